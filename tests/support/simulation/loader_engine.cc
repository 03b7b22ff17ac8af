#include "support/simulation/loader_engine.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace headrace::simulation {
namespace {

/// While a worker's own Python code runs, its sending thread gets the lock only so late, and so does the one
/// that answers for file descriptors.
constexpr double kLockDelay_s = 12e-3;
/// What a loader without workers takes for itself, per batch.
constexpr double kOwn_s = 2.5e-5;

class LoaderEngine {
 public:
  LoaderEngine(const DataLoader& loader, std::uint64_t seed)
      : loader_(loader), in_main_(loader.num_workers == 0), random_(seed) {
    happened_.workers.resize(static_cast<std::size_t>(std::max(1, loader.num_workers)));
    for (LoaderWorker& worker : happened_.workers) {
      worker.parts.resize(loader.parts.size());
      worker.index_time.assign(static_cast<std::size_t>(loader.prefetch_factor) + 1, 0);
    }
    window_ = in_main_ ? 1 : loader.num_workers * loader.prefetch_factor;
    const auto levels = static_cast<std::size_t>(window_) + 1;
    happened_.result_time.assign(levels, 0);
    happened_.reorder_time.assign(levels, 0);
    happened_.pinned_time.assign(levels, 0);
    first_.assign(happened_.workers.size(), true);
  }

  LoaderHappened run() {
    if (!in_main_) {
      for (int i = 0; i < window_; ++i) dispatch();
    }
    while (static_cast<int>(happened_.computes.size()) < loader_.steps && happened_.now < 600) advance();
    return std::move(happened_);
  }

 private:
  enum class Main { kCalls, kReceives, kWaits, kDraws, kLoads, kComputes };

  double factor_of(const Part& part, std::uint64_t item, std::size_t worker) {
    double factor = part.factor(item, random_);
    if (worker < loader_.worker_times.size()) factor *= loader_.worker_times[worker];
    return factor;
  }

  void begin_batch(LoaderWorker& worker, std::size_t number, int batch) {
    worker.batch = batch;
    for (std::size_t p = 0; p < loader_.parts.size(); ++p) {
      const Part& part = loader_.parts[p];
      for (int i = 0; i < (part.per_batch ? 1 : loader_.batch_size); ++i) {
        const auto item = static_cast<std::uint64_t>(batch * (part.per_batch ? 1 : loader_.batch_size) + i);
        const double factor = factor_of(part, item, number);
        Chunk chunk{static_cast<int>(p), item, factor * part.sleep_s, factor * part.cpu_s};
        if (std::uniform_real_distribution<>(0, 1)(random_) < loader_.hiccups)
          chunk.sleep_s += std::uniform_real_distribution<>(5e-3, 4e-2)(random_);
        if (first_[number]) chunk.sleep_s += loader_.first_item_s;
        first_[number] = false;
        worker.work.push_back(chunk);
      }
    }
  }

  /// The next index goes to the next worker in turn; out of order, to the next that has room.
  void dispatch() {
    const auto count = happened_.workers.size();
    for (std::size_t tried = 0; tried < count; ++tried) {
      const std::size_t to = turn_++ % count;
      LoaderWorker& worker = happened_.workers[to];
      if (!loader_.in_order && tasks_of(worker) >= static_cast<std::size_t>(loader_.prefetch_factor))
        continue;
      worker.indices.push_back(next_batch_);
      owner_.push_back(to);
      complete_.push_back(false);
      ++next_batch_;
      return;
    }
  }

  std::size_t tasks_of(const LoaderWorker& worker) const {
    std::size_t tasks = worker.indices.size() + (worker.batch >= 0 ? 1 : 0) + worker.sending.size();
    const auto own = [&](int batch) {
      return &happened_.workers[owner_[static_cast<std::size_t>(batch)]] == &worker;
    };
    return tasks + static_cast<std::size_t>(std::count_if(results_.begin(), results_.end(), own));
  }

  bool complete(int batch) const { return complete_[static_cast<std::size_t>(batch)]; }

  bool ready() const {
    if (in_main_) return false;
    if (loader_.in_order) return complete(awaited_);
    return std::any_of(finished_.begin(), finished_.end(), [](int) { return true; });
  }

  void call() {
    wait_ = 0;
    was_ready_ = ready();
    main_ = Main::kWaits;
  }

  /// One message from the results, if there is one: its cost, by the thread that receives.
  bool take_message(double& cpu_left, double& sleep_left, int& batch) {
    if (results_.empty()) return false;
    batch = results_.front();
    results_.pop_front();
    const LoaderWorker& worker = happened_.workers[owner_[static_cast<std::size_t>(batch)]];
    cpu_left = loader_.receive_cpu_s;
    sleep_left = loader_.receive_latency_s + (loader_.python && worker.batch >= 0 ? kLockDelay_s : 0);
    happened_.receives += 1;
    return true;
  }

  bool deliverable(int batch) const { return !loader_.in_order || batch == awaited_; }

  void deliver(int batch) {
    finished_.erase(batch);
    if (loader_.in_order) ++awaited_;
    main_ = Main::kDraws;
    main_cpu_left_ = loader_.sampler_s;
    main_sleep_left_ = 0;
  }

  void yield_batch() {
    if (!in_main_) dispatch();
    if (!recording_) {
      recording_ = true;
      happened_.startup_s = happened_.now;
      happened_.begin_s = happened_.now;
    } else {
      happened_.waits.push_back(wait_);
      if (was_ready_) {
        happened_.ready += 1;
        happened_.ready_wait += wait_;
      } else {
        happened_.starved += wait_;
        window().starved += wait_;
      }
    }
    const double factor = loader_.compute_factor(happened_.computes.size(), random_);
    main_sleep_left_ = factor * (loader_.compute_s - loader_.compute_cpu_s);
    main_cpu_left_ = factor * loader_.compute_cpu_s;
    compute_wall_ = 0;
    main_ = Main::kComputes;
  }

  /// Received and not yet yielded, in the order of arrival.
  int from_buffer() const {
    for (int batch : buffer_) {
      if (deliverable(batch)) return batch;
    }
    return -1;
  }

  bool main_done() const { return main_sleep_left_ <= 0 && main_cpu_left_ <= 0; }

  /// What the main thread does without time passing; true where something changed.
  bool step_main() {
    switch (main_) {
      case Main::kCalls:
        call();
        if (in_main_) {
          begin_batch(happened_.workers[0], 0, next_batch_++);
          main_ = Main::kLoads;
        }
        return true;
      case Main::kLoads:
        if (happened_.workers[0].batch >= 0) return false;
        main_ = Main::kDraws;
        main_cpu_left_ = loader_.sampler_s + kOwn_s;
        return true;
      case Main::kWaits: {
        const int batch = from_buffer();
        if (batch >= 0) {
          std::erase(buffer_, batch);
          deliver(batch);
          return true;
        }
        if (loader_.pin_s > 0) {
          if (pinned_.empty()) return false;
          buffer_.push_back(pinned_.front());
          pinned_.pop_front();
          return true;
        }
        if (!take_message(main_cpu_left_, main_sleep_left_, receiving_)) return false;
        main_ = Main::kReceives;
        return true;
      }
      case Main::kReceives:
        if (!main_done()) return false;
        buffer_.push_back(receiving_);
        main_ = Main::kWaits;
        return true;
      case Main::kDraws:
        if (!main_done()) return false;
        yield_batch();
        return true;
      case Main::kComputes:
        if (!main_done()) return false;
        if (recording_) {
          happened_.computes.push_back(compute_wall_);
          window().steps += 1;
        }
        main_ = Main::kCalls;
        return true;
    }
    return false;
  }

  void step_pin() {
    if (loader_.pin_s <= 0) return;
    if (pinning_ >= 0 && pin_sleep_left_ <= 0 && pin_cpu_left_ <= 0) {
      pinned_.push_back(pinning_);
      pinning_ = -1;
    }
    if (pinning_ < 0 && take_message(pin_cpu_left_, pin_sleep_left_, pinning_))
      pin_cpu_left_ += loader_.pin_s;
  }

  void step_worker(LoaderWorker& worker, std::size_t number) {
    while (worker.batch >= 0 && (worker.work.empty() || chunk_done(worker.work.front()))) {
      if (worker.work.empty()) {
        finish_batch(worker);
      } else {
        note_item(worker);
        worker.work.pop_front();
      }
    }
    if (worker.batch < 0 && !worker.indices.empty()) {
      begin_batch(worker, number, worker.indices.front());
      worker.indices.pop_front();
    }
    if (!worker.sending.empty() && worker.send_cpu_left <= 0 && worker.send_delay_left <= 0) {
      results_.push_back(worker.sending.front());
      worker.sending.pop_front();
      begin_sending(worker);
    }
  }

  static bool chunk_done(const Chunk& chunk) { return chunk.sleep_s <= 0 && chunk.cpu_s <= 0; }

  void finish_batch(LoaderWorker& worker) {
    const int batch = worker.batch;
    worker.batch = -1;
    if (in_main_) return;
    complete_[static_cast<std::size_t>(batch)] = true;
    finished_.insert(batch);
    worker.sending.push_back(batch);
    if (worker.sending.size() == 1) begin_sending(worker);
  }

  void begin_sending(LoaderWorker& worker) {
    worker.send_cpu_left = worker.sending.empty() ? 0 : loader_.pickle_cpu_s;
    worker.send_delay_left = !worker.sending.empty() && loader_.python ? kLockDelay_s : 0;
  }

  void note_item(LoaderWorker& worker) {
    const Chunk& chunk = worker.work.front();
    PartSeen& seen = worker.parts[static_cast<std::size_t>(chunk.part)];
    if (recording_) {
      seen.walls.push_back(worker.wall);
      seen.samples.push_back({chunk.item, worker.wall, worker.cpu});
      window().items[static_cast<std::size_t>(chunk.part)] += 1;
    }
    worker.wall = worker.cpu = 0;
  }

  LoaderSums& window() {
    const double at = happened_.now - happened_.begin_s;
    if (happened_.windows.empty() || at >= happened_.windows.back().start + kLoaderWindow_s) {
      LoaderSums sums;
      sums.start = happened_.windows.empty() ? 0 : happened_.windows.back().start + kLoaderWindow_s;
      sums.busy.assign(loader_.parts.size(), 0);
      sums.items.assign(loader_.parts.size(), 0);
      happened_.windows.push_back(sums);
    }
    return happened_.windows.back();
  }

  void share_cores() {
    std::vector<double*>& wants = wants_;
    std::vector<LoaderWorker*>& working = working_;
    wants.clear();
    working.clear();
    for (LoaderWorker& worker : happened_.workers) {
      if (worker.send_cpu_left > 0) wants.push_back(&worker.send_cpu_left);
      if (worker.batch < 0 || worker.work.empty() || worker.work.front().sleep_s > 0) continue;
      wants.push_back(&worker.work.front().cpu_s);
      working.push_back(&worker);
    }
    if (main_sleep_left_ <= 0 && main_cpu_left_ > 0) wants.push_back(&main_cpu_left_);
    if (pinning_ >= 0 && pin_sleep_left_ <= 0 && pin_cpu_left_ > 0) wants.push_back(&pin_cpu_left_);
    if (wants.empty()) return;
    const double cores = std::max(0.1, loader_.cores - loader_.foreign_cores);
    const double got = loader_.tick_s * std::min(1.0, cores / static_cast<double>(wants.size()));
    for (double* left : wants) *left -= got;
    for (LoaderWorker* worker : working) {
      worker->cpu += got;
      if (!recording_) continue;
      PartSeen& seen = worker->parts[static_cast<std::size_t>(worker->work.front().part)];
      seen.cpu += got;
      seen.run_queue += loader_.tick_s - got;
    }
    if (!recording_) return;
    happened_.all_cpu += got * static_cast<double>(wants.size());
    window().cpu += got * static_cast<double>(wants.size());
    const bool by_main = std::find(wants.begin(), wants.end(), &main_cpu_left_) != wants.end();
    if (by_main || (in_main_ && !working.empty())) happened_.main_cpu += got;
    if (by_main && main_ == Main::kComputes) happened_.compute_cpu += got;
  }

  void charge(std::string_view what, int part) {
    for (LoaderCharge& row : happened_.ledger) {
      if (row.part != part || row.what != what) continue;
      row.seconds += loader_.tick_s;
      return;
    }
    happened_.ledger.push_back({std::string(what), part, loader_.tick_s});
  }

  void charge_wait() {
    if (main_ == Main::kDraws) {
      charge("in_service", kDrawing);
      return;
    }
    if (in_main_) {
      const LoaderWorker& worker = happened_.workers[0];
      charge("in_service", worker.work.empty() ? -1 : worker.work.front().part);
      return;
    }
    const int batch = loader_.in_order ? awaited_ : oldest_in_service();
    if (batch < 0 || (loader_.in_order ? complete(batch) : !finished_.empty())) {
      charge("handoff", -1);
      window().handoff += loader_.tick_s;
      return;
    }
    const LoaderWorker& worker = happened_.workers[owner_[static_cast<std::size_t>(batch)]];
    const int part = worker.work.empty() ? -1 : worker.work.front().part;
    const bool younger = loader_.in_order && !finished_.empty();
    charge(worker.batch != batch ? "waiting_for_worker" : younger ? "order" : "in_service", part);
  }

  int oldest_in_service() const {
    int oldest = -1;
    for (const LoaderWorker& worker : happened_.workers) {
      if (worker.batch >= 0 && (oldest < 0 || worker.batch < oldest)) oldest = worker.batch;
    }
    return oldest;
  }

  void advance() {
    for (std::size_t w = 0; w < happened_.workers.size(); ++w) step_worker(happened_.workers[w], w);
    step_pin();
    while (step_main()) {
    }
    share_cores();
    const double tick = loader_.tick_s;
    happened_.now += tick;
    for (LoaderWorker& worker : happened_.workers) {
      if (worker.send_delay_left > 0) worker.send_delay_left -= worker.batch >= 0 ? tick : kLockDelay_s;
      if (worker.batch < 0 || worker.work.empty()) {
        if (recording_) worker.blocked_out += tick;
        continue;
      }
      worker.wall += tick;
      Chunk& chunk = worker.work.front();
      if (recording_) {
        worker.parts[static_cast<std::size_t>(chunk.part)].busy += tick;
        window().busy[static_cast<std::size_t>(chunk.part)] += tick;
      }
      if (chunk.sleep_s > 0) chunk.sleep_s -= tick;
    }
    if (main_sleep_left_ > 0) main_sleep_left_ -= tick;
    if (pinning_ >= 0 && pin_sleep_left_ > 0) pin_sleep_left_ -= tick;
    if (main_ == Main::kComputes) compute_wall_ += tick;
    if (recording_) record();
  }

  void record() {
    const double tick = loader_.tick_s;
    LoaderSums& sums = window();
    if (main_ == Main::kComputes) {
      sums.compute += tick;
    } else {
      wait_ += tick;
      sums.wait += tick;
      charge_wait();
    }
    if (main_ == Main::kReceives) happened_.receive_wall += tick;
    if (main_ == Main::kDraws) happened_.sampler_busy += tick;
    if (pinning_ >= 0) happened_.pin_busy += tick;
    const auto at = [](std::vector<double>& levels, std::size_t level) -> double& {
      return levels[std::min(level, levels.size() - 1)];
    };
    std::size_t waiting = results_.size();
    for (LoaderWorker& worker : happened_.workers) {
      waiting += worker.sending.size();
      at(worker.index_time, worker.indices.size()) += tick;
    }
    at(happened_.result_time, waiting) += tick;
    at(happened_.reorder_time, buffer_.size()) += tick;
    at(happened_.pinned_time, pinned_.size()) += tick;
    sums.results += static_cast<double>(waiting) * tick;
  }

  const DataLoader& loader_;
  bool in_main_;
  Random random_;
  LoaderHappened happened_;
  std::vector<std::size_t> owner_;  // worker of each batch
  std::vector<bool> complete_;      // collated, per batch
  std::vector<bool> first_;         // a worker's first item is still to come
  std::deque<int> results_, pinned_;
  std::vector<int> buffer_;
  std::set<int> finished_;      // collated and not yielded
  std::vector<double*> wants_;  // CPU time left of all who want some
  std::vector<LoaderWorker*> working_;
  int window_ = 1, next_batch_ = 0, awaited_ = 0, receiving_ = -1, pinning_ = -1;
  std::size_t turn_ = 0;
  Main main_ = Main::kCalls;
  double main_sleep_left_ = 0, main_cpu_left_ = 0, pin_sleep_left_ = 0, pin_cpu_left_ = 0;
  double wait_ = 0, compute_wall_ = 0;
  bool recording_ = false, was_ready_ = false;
};

}  // namespace

LoaderHappened happen(const DataLoader& loader, std::uint64_t seed) {
  return LoaderEngine(loader, seed).run();
}

}  // namespace headrace::simulation
