// One actor's work, done in parts.
#pragma once

#include "headrace/analysis/model/work.h"
#include "headrace/analysis/simulate/engine.h"

namespace headrace::analysis {

/// Off-CPU and CPU work alternate (item by item in truth): as one block each, they would overlap with others
/// in another way (measured: 18 % of error with half of both). So work of several kinds is done in turns.
class Task {
 public:
  /// turns: in how many of them work of several kinds is done. It needs the interpreter lock once in each.
  void set(const Work& work, int turns = kTurns) noexcept;
  /// Starts the next part; false where all is done.
  bool go_on(Engine& engine, int actor);

 private:
  enum class Part { kOff, kLocked, kCpu };

  Work turn_;
  int turns_ = 0;
  Part next_ = Part::kOff;
};

}  // namespace headrace::analysis
