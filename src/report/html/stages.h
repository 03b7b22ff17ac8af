// The recorded graph as columns from left to right: what stands side by side, and which queues lead there.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::report {

/// Operators that the same workers run in turn, in the order of the data flow; the training step is one
/// without operators.
struct Box {
  std::vector<const profile::OperatorProfile*> operators;
  bool in_sink = false;  ///< they run inside GetNext
  bool is_sink() const { return operators.empty(); }
};

struct StageQueue {
  profile::QueueProfile queue;  ///< numbered queues of the workers are one (loader_sections.h)
  bool clear = true;            ///< its place tells which two boxes it connects
};

struct Stage {
  std::vector<StageQueue> queues;  ///< those that the boxes take from
  std::vector<Box> boxes;
};

/// The sink's stage is the last one. Every operator is in one box; every queue before one stage.
std::vector<Stage> stages_of(const profile::Profile& profile);

}  // namespace headrace::report
