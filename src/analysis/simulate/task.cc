#include "headrace/analysis/simulate/task.h"

#include <algorithm>

namespace headrace::analysis {
namespace {

/// Work that is nearly all of one kind is done at once.
constexpr double kMixed = 0.1;
/// Everything takes some time, so that one thing is never called from within another.
constexpr double kMin_s = 1e-7;

}  // namespace

void Task::set(const Work& work, int turns) noexcept {
  const double largest_s = std::max({work.off_s, work.cpu_s, work.locked_s});
  // However little the part under the lock is, the thread must get the lock for it.
  const bool mixed = work.total_s() - largest_s > kMixed * work.total_s() ||
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
