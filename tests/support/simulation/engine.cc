#include "support/simulation/engine.h"

#include <algorithm>
#include <utility>

namespace headrace::simulation {
namespace {

constexpr double kTurn_s = 5e-3;  // of the interpreter lock

class Engine {
 public:
  Engine(const Line& line, std::uint64_t seed) : line_(line), random_(seed) {
    for (std::size_t s = 0; s < line.stages.size(); ++s) {
      for (int w = 0; w < line.stages[s].workers; ++w) {
        Thread thread;
        thread.stage = static_cast<int>(s);
        thread.number = w;
        happened_.threads.push_back(thread);
      }
      Queue queue;
      queue.capacity = line.stages[s].capacity;
      queue.level = line.stages[s].prefilled;
      queue.time.assign(static_cast<std::size_t>(queue.capacity) + 1, 0);
      happened_.queues.push_back(queue);
    }
    happened_.threads.push_back(Thread{});  // the sink, stage -1
    held_.resize(line.stages.size());
    next_in_.assign(line.stages.size(), 0);
    next_out_.assign(line.stages.size(), 0);
    happened_.ledger.assign(line.stages.size() + 1, 0);
    startup_left_ = line.first_item_s;
    lock_matters_ = std::any_of(line.stages.begin(), line.stages.end(),
                                [](const Stage& s) { return s.python && !s.process; }) ||
                    line.compute_python;
  }

  Happened run() {
    for (std::uint64_t tick = 0; steps_ < line_.steps && tick < 40'000'000; ++tick) advance(tick);
    return std::move(happened_);
  }

 private:
  const Stage& stage_of(const Thread& thread) const {
    return line_.stages[static_cast<std::size_t>(thread.stage)];
  }
  bool needs_lock(const Thread& thread) const {
    if (thread.stage < 0) return line_.compute_python;
    return stage_of(thread).python && !stage_of(thread).process;
  }
  /// Between items any Python thread needs the lock for a moment; only then does it matter who holds it.
  bool may_switch(const Thread& thread) const {
    if (!lock_matters_ || (thread.stage >= 0 && stage_of(thread).process)) return true;
    return holder_ < 0 || &happened_.threads[static_cast<std::size_t>(holder_)] == &thread || turn_over_;
  }

  void begin_work(Thread& thread) {
    const bool sink = thread.stage < 0;
    double factor = sink ? line_.compute_factor(static_cast<std::uint64_t>(steps_), random_)
                         : stage_of(thread).factor(thread.item, random_);
    if (!sink && static_cast<std::size_t>(thread.number) < stage_of(thread).worker_times.size()) {
      factor *= stage_of(thread).worker_times[static_cast<std::size_t>(thread.number)];
    }
    const double extra_s = !sink && std::uniform_real_distribution<>(0, 1)(random_) < line_.hiccups
                               ? std::uniform_real_distribution<>(5e-3, 4e-2)(random_)
                               : 0;
    thread.sleep_left =
        extra_s + factor * (sink ? line_.compute_s - line_.compute_cpu_s : stage_of(thread).sleep_s);
    thread.cpu_left = factor * (sink ? line_.compute_cpu_s : stage_of(thread).cpu_s);
    if (thread.stage == 0 && startup_left_ > 0) {
      thread.sleep_left += startup_left_;
      startup_left_ = 0;
    }
    thread.item_wall = 0;
    thread.item_cpu = 0;
    thread.state = Thread::State::kWorks;
  }

  void take_input(Thread& thread) {
    const std::size_t s = static_cast<std::size_t>(thread.stage);
    if (thread.stage == 0) {
      thread.item = next_in_[0]++;
      begin_work(thread);
      return;
    }
    Queue& queue = happened_.queues[thread.stage < 0 ? happened_.queues.size() - 1 : s - 1];
    const int wanted = thread.stage < 0 ? 1 : stage_of(thread).take;
    while (thread.taken < wanted && queue.level >= 1) {
      queue.level -= 1;
      ++thread.taken;
    }
    if (thread.taken < wanted) return;
    thread.taken = 0;
    if (thread.stage >= 0) thread.item = next_in_[s]++;
    if (thread.stage < 0) note_wait(thread);
    begin_work(thread);
  }

  void put_output(Thread& thread) {
    const std::size_t s = static_cast<std::size_t>(thread.stage);
    Queue& queue = happened_.queues[s];
    std::map<std::uint64_t, bool>& held = held_[s];
    if (stage_of(thread).ordered) {
      // Results wait for their turn in a buffer as large as the queue; the next one in order always has room.
      if (thread.item != next_out_[s] && static_cast<int>(held.size()) >= queue.capacity) return;
      held[thread.item] = true;
      while (!held.empty() && held.begin()->first == next_out_[s] && queue.level < queue.capacity) {
        held.erase(held.begin());
        queue.level += 1;
        ++next_out_[s];
      }
    } else {
      if (queue.level >= queue.capacity) return;
      queue.level += 1;
    }
    thread.state = Thread::State::kWantsInput;
  }

  void flush_held() {
    for (std::size_t s = 0; s < happened_.queues.size(); ++s) {
      std::map<std::uint64_t, bool>& held = held_[s];
      while (!held.empty() && held.begin()->first == next_out_[s] &&
             happened_.queues[s].level < happened_.queues[s].capacity) {
        held.erase(held.begin());
        happened_.queues[s].level += 1;
        ++next_out_[s];
      }
    }
  }

  void finish_work(Thread& thread) {
    if (thread.stage < 0) {
      if (recording_) happened_.computes.push_back(thread.item_wall);
      if (recording_) window().steps += 1;
      ++steps_;
      thread.state = Thread::State::kWantsInput;
      wait_ = 0;
      thread.was_ready = happened_.queues.back().level >= 1;
      return;
    }
    if (recording_) {
      thread.walls.push_back(thread.item_wall);
      thread.samples.push_back({thread.walls.size() - 1, thread.item_wall, thread.item_cpu});
      window().items[static_cast<std::size_t>(thread.stage)] += 1;
    }
    thread.state = Thread::State::kWantsOutput;
  }

  void note_wait(Thread& sink) {
    if (!recording_) {
      // The first batch: what came before is start-up.
      happened_.startup_s = happened_.now;
      recording_ = true;
      happened_.begin_s = happened_.now;
      return;
    }
    happened_.waits.push_back(wait_);
    if (sink.was_ready) {
      ++happened_.ready;
      happened_.ready_wait += wait_;
    } else {
      happened_.starved += wait_;
      window().starved += wait_;
    }
  }

  Sums& window() {
    const double at = happened_.now - happened_.begin_s;
    if (happened_.windows.empty() || at >= happened_.windows.back().start + kWindow_s) {
      Sums sums;
      sums.start = happened_.windows.empty() ? 0 : happened_.windows.back().start + kWindow_s;
      sums.busy.assign(line_.stages.size(), 0);
      sums.items.assign(line_.stages.size(), 0);
      sums.level.assign(line_.stages.size(), 0);
      sums.empty = sums.full = sums.level;
      happened_.windows.push_back(sums);
    }
    return happened_.windows.back();
  }

  void share_cores() {
    std::vector<Thread*> runnable;
    std::vector<int> want_lock;
    for (std::size_t i = 0; i < happened_.threads.size(); ++i) {
      Thread& thread = happened_.threads[i];
      if (thread.state != Thread::State::kWorks || thread.sleep_left > 0 || thread.cpu_left <= 0) continue;
      if (needs_lock(thread)) {
        want_lock.push_back(static_cast<int>(i));
      } else {
        runnable.push_back(&thread);
      }
    }
    turn_over_ = false;
    if (want_lock.empty()) {
      holder_ = -1;
    } else {
      const bool holds = std::find(want_lock.begin(), want_lock.end(), holder_) != want_lock.end();
      if (holds && happened_.threads[static_cast<std::size_t>(holder_)].held_s >= kTurn_s) turn_over_ = true;
      if (!holds || turn_over_) {
        const auto next =
            std::find_if(want_lock.begin(), want_lock.end(), [&](int i) { return i > holder_; });
        holder_ = next == want_lock.end() ? want_lock.front() : *next;
        happened_.threads[static_cast<std::size_t>(holder_)].held_s = 0;
      }
      runnable.push_back(&happened_.threads[static_cast<std::size_t>(holder_)]);
      happened_.threads[static_cast<std::size_t>(holder_)].held_s += kTick_s;
    }
    if (recording_) {
      for (const int waits : want_lock) {
        Thread& thread = happened_.threads[static_cast<std::size_t>(waits)];
        (waits == holder_ ? thread.lock_held : thread.lock_wait) += kTick_s;
      }
    }
    const double cores = std::max(0.1, line_.cores - line_.foreign_cores);
    const double share = runnable.empty() ? 1 : std::min(1.0, cores / static_cast<double>(runnable.size()));
    for (Thread* thread : runnable) {
      thread->cpu_left -= kTick_s * share;
      thread->item_cpu += kTick_s * share;
      if (!recording_) continue;
      thread->cpu += kTick_s * share;
      thread->run_queue += kTick_s * (1 - share);
      happened_.process_cpu += thread->stage >= 0 && stage_of(*thread).process ? 0 : kTick_s * share;
      happened_.all_cpu += kTick_s * share;
      window().cpu += kTick_s * share;
    }
  }

  void charge_wait() {
    for (std::size_t s = line_.stages.size(); s-- > 0;) {
      for (const Thread& thread : happened_.threads) {
        if (thread.stage == static_cast<int>(s) && thread.state == Thread::State::kWorks) {
          happened_.ledger[s] += kTick_s;
          return;
        }
      }
    }
    happened_.ledger.back() += kTick_s;
  }

  void advance(std::uint64_t tick) {
    happened_.now = static_cast<double>(tick) * kTick_s;
    flush_held();
    // Downstream first, so that an item passes one stage per tick; twice, so that room made is used at once.
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = happened_.threads.size(); i-- > 0;) {
        Thread& thread = happened_.threads[i];
        if (thread.state == Thread::State::kWorks && thread.sleep_left <= 0 && thread.cpu_left <= 0) {
          if (may_switch(thread)) {
            finish_work(thread);
          } else if (round == 1 && recording_) {
            thread.lock_wait += kTick_s;
          }
        }
        if (thread.state == Thread::State::kWantsOutput) put_output(thread);
        if (thread.state == Thread::State::kWantsInput && may_switch(thread)) take_input(thread);
      }
    }
    share_cores();
    for (Thread& thread : happened_.threads) {
      if (thread.state == Thread::State::kWorks) {
        thread.item_wall += kTick_s;
        if (thread.sleep_left > 0) thread.sleep_left -= kTick_s;
      }
    }
    if (!recording_) return;
    if (tick % 100 == 0) {
      ++happened_.probes;
      const bool taken = holder_ >= 0 && happened_.threads[static_cast<std::size_t>(holder_)].cpu_left > 1e-3;
      happened_.probes_taken += taken ? 1 : 0;
    }
    record();
  }

  void record() {
    Sums& sums = window();
    for (Thread& thread : happened_.threads) {
      const bool works = thread.state == Thread::State::kWorks;
      (works ? thread.busy : thread.state == Thread::State::kWantsInput ? thread.in : thread.out) += kTick_s;
      if (thread.stage >= 0) {
        if (works) sums.busy[static_cast<std::size_t>(thread.stage)] += kTick_s;
      } else if (works) {
        sums.compute += kTick_s;
      } else {
        sums.wait += kTick_s;
        wait_ += kTick_s;
        charge_wait();
      }
    }
    for (std::size_t q = 0; q < happened_.queues.size(); ++q) {
      Queue& queue = happened_.queues[q];
      const auto level = static_cast<std::size_t>(std::min<double>(queue.level, queue.capacity));
      queue.time[level] += kTick_s;
      queue.mean_time += queue.level * kTick_s;
      sums.level[q] += queue.level * kTick_s;
      if (queue.level < 1) sums.empty[q] += kTick_s;
      if (queue.level >= queue.capacity) sums.full[q] += kTick_s;
    }
  }

  const Line& line_;
  Random random_;
  Happened happened_;
  std::vector<std::map<std::uint64_t, bool>> held_;
  std::vector<std::uint64_t> next_in_, next_out_;
  double startup_left_ = 0, wait_ = 0;
  int steps_ = 0, holder_ = -1;
  bool recording_ = false, turn_over_ = false, lock_matters_ = false;
};

}  // namespace

Happened happen(const Line& line, std::uint64_t seed) { return Engine(line, seed).run(); }

}  // namespace headrace::simulation
