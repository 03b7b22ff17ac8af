// Queues that each thread takes from and puts to, in items per batch; from a Profile, loops cut open.
#pragma once

#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Items per batch that one group passes over one queue.
struct Flow {
  int queue = 0;
  double per_batch = 1;
};

/// Operators that share their threads.
struct Group {
  std::vector<int> operators;  ///< indices into Profile::operators, in the order of the data flow
  int workers = 1;
  double per_batch = 1;  ///< items of the one that handles most of them
  std::vector<Flow> inputs;
  std::vector<Flow> outputs;
};

struct PipelineGraph {
  std::vector<Group> groups;     ///< in the order of the data flow
  Group sink;                    ///< operators inside GetNext; what the training loop takes
  std::vector<double> capacity;  ///< items, per queue of the profile, then queues that were not seen
  bool guessed_queue = false;

  /// The group that runs operator `index`; null if it runs inside GetNext or not at all.
  Group* group_of(int index);
};

/// Every group leads to the training loop in the end: where no queue was seen behind one, one of a few items
/// is supposed.
PipelineGraph pipeline_graph(const profile::Profile& profile);

}  // namespace headrace::analysis
