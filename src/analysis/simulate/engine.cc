#include "headrace/analysis/simulate/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "headrace/analysis/read/cores.h"

namespace headrace::analysis {
namespace {

/// Each is an event of every step, and a step has time for all of its work beside so many.
constexpr double kMaxInPool = 16;

/// Everything takes some time, so that one thing is never called from within another.
constexpr double kMin_s = 1e-7;

}  // namespace

double Engine::lock_wait_s(int actor) const noexcept {
  const auto at = static_cast<std::size_t>(actor);
  return at < lock_waits_s_.size() ? lock_waits_s_[at] : 0;
}

void Engine::compute_locked(int actor, double cpu_s) {
  if (holder_.actor == kNobody) {
    take_lock({actor, cpu_s, now_});
  } else {
    lock_queue_.push_back({actor, cpu_s, now_});
  }
}

void Engine::take_lock(Locked part) {
  const auto at = static_cast<std::size_t>(part.actor);
  if (at >= lock_waits_s_.size()) lock_waits_s_.resize(at + 1, 0);
  lock_waits_s_[at] += now_ - part.since_s;
  holder_ = {part.actor, each_had_s_ + part.cpu_s, now_};
}

void Engine::hand_lock_over() {
  holder_.actor = kNobody;
  if (lock_queue_.empty()) return;
  const Locked next = lock_queue_.front();
  lock_queue_.pop_front();
  take_lock(next);
}

void Engine::compute_in_pool(double cpu_s) {
  const int threads = static_cast<int>(std::clamp(std::ceil(cores_), 1.0, kMaxInPool));
  for (int i = 0; i < threads; ++i) compute(kPool, cpu_s / threads);
  pool_left_ += threads;
}

int Engine::next() {
  for (;;) {
    if (sleeping_.empty() && computing_.empty() && holder_.actor == kNobody) return kNobody;
    const int actor = advance();
    if (actor >= 0) return actor;
    if (actor == kPool && --pool_left_ == 0 && awaits_pool_ != kNobody)
      return std::exchange(awaits_pool_, kNobody);
  }
}

int Engine::advance() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool held = holder_.actor != kNobody;
  const double runnable = static_cast<double>(computing_.size()) + (held ? 1 : 0);
  const double busy = std::min(runnable, cores_);
  const double pace = 1 / slowdown(cores_ > 1 ? (busy - 1) / (cores_ - 1) : 0);
  const double rate = runnable > 0 ? busy / runnable * pace : 0;
  const auto computes_s = [&](double until_s) { return std::max(0.0, until_s - each_had_s_) / rate; };

  const double sleeps_s = sleeping_.empty() ? kNever : std::max(0.0, sleeping_.top().first - now_);
  const double free_s = computing_.empty() ? kNever : computes_s(computing_.top().first);
  const double locked_s = held ? computes_s(holder_.cpu_s) : kNever;
  // A waiter begins its interval anew whenever the lock has changed hands.
  const double switches_s =
      lock_queue_.empty()
          ? kNever
          : std::max(0.0, std::max(holder_.since_s, lock_queue_.front().since_s) + kSwitchInterval_s - now_);
  const double elapsed_s = std::min({sleeps_s, free_s, locked_s, switches_s});

  now_ += elapsed_s;
  each_had_s_ += elapsed_s * rate;
  computed_s_ += elapsed_s * busy;
  if (held) locked_s_ += elapsed_s * busy / runnable;

  if (sleeps_s <= elapsed_s || free_s <= elapsed_s) {
    Heap& from = sleeps_s <= elapsed_s ? sleeping_ : computing_;
    const int actor = from.top().second;
    from.pop();
    return actor;
  }
  const int actor = holder_.actor;
  if (locked_s > elapsed_s) lock_queue_.push_back({actor, holder_.cpu_s - each_had_s_, now_});
  hand_lock_over();
  return locked_s > elapsed_s ? kNobody : actor;
}

void Task::set(const Work& work, int turns) noexcept {
  const double largest_s = std::max({work.off_s, work.cpu_s, work.locked_s});
  // However little the part under the lock is, the thread must get the lock for it.
  const bool mixed = work.total_s() - largest_s > kHardly * work.total_s() ||
                     (work.locked_s > 0 && work.locked_s < work.total_s());
  turns_ = mixed ? std::max(1, turns) : 1;
  turn_ = work * (1.0 / turns_);
  if (turn_.total_s() <= 0) turn_.off_s = kMin_s;
  next_ = Part::kOff;
}

bool Task::go_on(Engine& engine, int actor) {
  while (turns_ > 0) {
    switch (next_) {
      case Part::kOff:
        next_ = Part::kLocked;
        if (turn_.off_s <= 0) break;
        engine.sleep(actor, turn_.off_s);
        return true;
      case Part::kLocked:
        next_ = Part::kCpu;
        if (turn_.locked_s <= 0) break;
        engine.compute_locked(actor, turn_.locked_s);
        return true;
      case Part::kCpu:
        next_ = Part::kOff;
        --turns_;
        if (turn_.cpu_s <= 0) break;
        engine.compute(actor, turn_.cpu_s);
        return true;
    }
  }
  return false;
}

}  // namespace headrace::analysis
