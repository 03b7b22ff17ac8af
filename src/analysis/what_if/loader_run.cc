#include "headrace/analysis/what_if/loader_run.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "headrace/analysis/what_if/device_queue.h"
#include "headrace/analysis/what_if/engine.h"
#include "headrace/analysis/what_if/task.h"
#include "limits.h"

namespace headrace::analysis {
namespace {

class LoaderRun {
 public:
  LoaderRun(const SimulatedLoader& model, int batches, std::uint64_t first)
      : model_(model),
        engine_(model.cores),
        device_(model.device_s),
        first_(first),
        workers_(static_cast<std::size_t>(std::max(1, model.workers))),
        settle_(std::min(kLongestSettle, model.workers * model.per_worker + kSettle)),
        steps_(settle_ + batches) {
    const std::int64_t in_flight = std::int64_t{model.workers} * model.per_worker;
    arrived_.assign(static_cast<std::size_t>(steps_ + in_flight + 2), false);
  }

  SimulatedRun run() {
    const int window = model_.workers * model_.per_worker;
    for (int i = 0; i < window; ++i) dispatch();
    call();
    while (done_ < steps_) {
      const int actor = engine_.next();
      if (actor < 0) break;
      resume(actor);
    }
    return figures();
  }

 private:
  static constexpr int kLongestSettle = 400;

  enum class Main { kWaits, kReceives, kLoads, kDraws, kAwaitsPool, kSteps, kAwaitsDevice };

  struct Worker {
    std::deque<int> indices;
    std::deque<int> sending;
    int batch = -1;
    int tasks = 0;
    double since_s = 0;
    Task task;
  };

  // Actors: the training loop, the thread that pins, then each worker and its sending thread.
  static constexpr int kMain = 0;
  static constexpr int kPin = 1;
  static int worker_actor(std::size_t w) { return static_cast<int>(2 + 2 * w); }

  const Work& batch_work(int batch) const {
    const std::size_t at = first_ * model_.lanes.size() + static_cast<std::size_t>(batch);
    const std::vector<Work>& lane = model_.lanes[at % model_.lanes.size()];
    return lane[at / model_.lanes.size() % lane.size()];
  }

  void dispatch() {
    for (std::size_t tried = 0; tried < workers_.size(); ++tried) {
      const std::size_t to = turn_++ % workers_.size();
      if (!model_.ordered && workers_[to].tasks >= model_.per_worker) continue;
      workers_[to].indices.push_back(next_++);
      owner_.push_back(to);
      ++workers_[to].tasks;
      if (workers_[to].batch < 0) begin_batch(to);
      return;
    }
  }

  void begin_batch(std::size_t w) {
    Worker& worker = workers_[w];
    if (worker.indices.empty()) return;
    worker.batch = worker.indices.front();
    worker.indices.pop_front();
    worker.since_s = engine_.now();
    worker.task.set(batch_work(worker.batch));
    go_on_with_batch(w);
  }

  void go_on_with_batch(std::size_t w) {
    Worker& worker = workers_[w];
    if (worker.task.go_on(engine_, worker_actor(w))) return;
    if (settled()) worker_s_ += engine_.now() - std::max(worker.since_s, settled_s_);
    worker.sending.push_back(worker.batch);
    worker.batch = -1;
    if (worker.sending.size() == 1) engine_.compute(worker_actor(w) + 1, model_.pickle_cpu_s);
    begin_batch(w);
  }

  void sent(std::size_t w) {
    Worker& worker = workers_[w];
    results_.push_back(worker.sending.front());
    worker.sending.pop_front();
    if (!worker.sending.empty()) engine_.compute(worker_actor(w) + 1, model_.pickle_cpu_s);
    if (model_.pins) {
      pin_next();
    } else if (main_ == Main::kWaits) {
      receive();
    }
  }

  Work receiving_of(int batch) const {
    Work work = model_.receive;
    if (workers_[owner_[static_cast<std::size_t>(batch)]].batch >= 0) work.off_s += model_.locked_s;
    return work;
  }

  void pin_next() {
    if (pinning_ >= 0 || results_.empty()) return;
    pinning_ = results_.front();
    results_.pop_front();
    pin_since_s_ = engine_.now();
    Work work = receiving_of(pinning_);
    work += model_.pin;
    pin_task_.set(work);
    go_on_pinning();
  }

  void go_on_pinning() {
    if (pin_task_.go_on(engine_, kPin)) return;
    if (settled()) pin_s_ += engine_.now() - std::max(pin_since_s_, settled_s_);
    arrived(pinning_);
    pinning_ = -1;
    pin_next();
    if (main_ == Main::kWaits) take();
  }

  void arrived(int batch) {
    if (model_.ordered) {
      arrived_[static_cast<std::size_t>(batch)] = true;
    } else {
      ready_.push_back(batch);
    }
  }

  void call() {
    called_s_ = engine_.now();
    main_ = Main::kWaits;
    if (model_.workers == 0) {
      main_ = Main::kLoads;
      Work work = batch_work(next_++);
      work += model_.receive;
      task_.set(work);
      go_on_in_main();
      return;
    }
    take();
  }

  /// The awaited batch, if it is here; else the next message.
  void take() {
    int batch = -1;
    if (model_.ordered && arrived_[static_cast<std::size_t>(awaited_)]) {
      batch = awaited_++;
    } else if (!model_.ordered && !ready_.empty()) {
      batch = ready_.front();
      ready_.pop_front();
    }
    if (batch >= 0) {
      --workers_[owner_[static_cast<std::size_t>(batch)]].tasks;
      serve(Main::kDraws, model_.draw);
    } else if (!model_.pins) {
      receive();
    }
  }

  void receive() {
    if (results_.empty()) return;
    receiving_ = results_.front();
    results_.pop_front();
    serve(Main::kReceives, receiving_of(receiving_));
  }

  void serve(Main what, const Work& work) {
    main_ = what;
    serve_since_s_ = engine_.now();
    task_.set(work);
    go_on_in_main();
  }

  void go_on_in_main() {
    if (task_.go_on(engine_, kMain)) return;
    switch (main_) {
      case Main::kReceives:
        served();
        arrived(receiving_);
        main_ = Main::kWaits;
        take();
        break;
      case Main::kLoads:
        serve(Main::kDraws, model_.draw);
        break;
      case Main::kDraws:
        served();
        yield_batch();
        break;
      case Main::kAwaitsPool:
        step();
        break;
      case Main::kSteps:
        if (awaits_device()) break;
        [[fallthrough]];
      case Main::kAwaitsDevice:
        if (++done_ == settle_) settle();
        if (done_ < steps_) call();
        break;
      case Main::kWaits:
        break;
    }
  }

  void served() {
    if (settled()) serve_s_ += engine_.now() - std::max(serve_since_s_, settled_s_);
  }

  void yield_batch() {
    if (settled()) wait_s_ += engine_.now() - called_s_;
    if (model_.workers > 0) dispatch();
    step();
  }

  void step() {
    main_ = Main::kAwaitsPool;
    // What the pool computes may take until the next step begins.
    if (engine_.pool_computes()) return engine_.await_pool(kMain);
    if (model_.pool_cpu_s > 0) engine_.compute_in_pool(model_.pool_cpu_s);
    main_ = Main::kSteps;
    step_since_s_ = engine_.now();
    task_.set(model_.steps[(first_ + static_cast<std::size_t>(done_)) % model_.steps.size()]);
    go_on_in_main();
  }

  /// False: there is room for the next step in the device's queue.
  bool awaits_device() {
    const double wait_s = device_.put(step_since_s_, engine_.now());
    if (wait_s <= 0) return false;
    main_ = Main::kAwaitsDevice;
    task_.set({wait_s, 0});
    return task_.go_on(engine_, kMain);
  }

  void resume(int actor) {
    if (actor == kMain) {
      go_on_in_main();
    } else if (actor == kPin) {
      go_on_pinning();
    } else if (actor % 2 == 0) {
      go_on_with_batch(static_cast<std::size_t>(actor / 2 - 1));
    } else {
      sent(static_cast<std::size_t>(actor / 2 - 1));
    }
  }

  bool settled() const { return done_ >= settle_; }
  void settle() {
    settled_s_ = engine_.now();
    computed_before_s_ = engine_.computed_s();
  }

  SimulatedRun figures() const {
    SimulatedRun run;
    const double time_s = engine_.now() - settled_s_;
    if (done_ < steps_ || time_s <= 0) return run;
    run.step_s = time_s / (steps_ - settle_);
    run.wait_share = wait_s_ / time_s;
    run.serve_share = serve_s_ / time_s;
    double worker_s = worker_s_;
    for (const Worker& worker : workers_) {
      if (worker.batch >= 0) worker_s += engine_.now() - std::max(worker.since_s, settled_s_);
    }
    run.worker_share = worker_s / time_s / static_cast<double>(workers_.size());
    run.pin_share = pin_s_ / time_s;
    run.cpu_share = (engine_.computed_s() - computed_before_s_) / time_s / model_.cores;
    return run;
  }

  const SimulatedLoader& model_;
  Engine engine_;
  DeviceQueue device_;
  std::size_t first_;
  std::vector<Worker> workers_;
  std::vector<std::size_t> owner_;  // worker of each batch
  std::vector<bool> arrived_;       // received, per batch
  std::deque<int> results_, ready_;
  std::size_t turn_ = 0;
  int next_ = 0, awaited_ = 0, receiving_ = -1, pinning_ = -1, done_ = 0;
  int settle_, steps_;
  Main main_ = Main::kWaits;
  Task task_, pin_task_;
  double called_s_ = 0, serve_since_s_ = 0, pin_since_s_ = 0, step_since_s_ = 0;
  double settled_s_ = 0, computed_before_s_ = 0;
  double wait_s_ = 0, serve_s_ = 0, worker_s_ = 0, pin_s_ = 0;
};

}  // namespace

void SimulatedRun::add(const SimulatedRun& run, double part) noexcept {
  step_s += part * run.step_s;
  wait_share += part * run.wait_share;
  serve_share += part * run.serve_share;
  worker_share += part * run.worker_share;
  pin_share += part * run.pin_share;
  cpu_share += part * run.cpu_share;
}

SimulatedRun simulate(const SimulatedLoader& model, int batches, std::uint64_t first) {
  return LoaderRun(model, batches, first).run();
}

}  // namespace headrace::analysis
