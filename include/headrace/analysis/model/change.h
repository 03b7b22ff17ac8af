// One change to a recorded loader, for a simulation to make.
#pragma once

namespace headrace::analysis {

/// One thing that is set to another value.
struct Change {
  enum class Kind {
    kWorkers,    ///< of the operator (and those that share its threads); 0: in the sink's thread
    kCapacity,   ///< of the queue
    kPrefetch,   ///< operators in the sink's thread move to a background thread with a queue of `to` batches
    kProcesses,  ///< operators in threads move to `to` processes
    kService,    ///< the operator's mean service time is multiplied by `factor`
    kAlike,      ///< the operator's slowest worker becomes like its siblings: its mean changes by `factor`
    kCores,      ///< as many as anybody could use
    kUsual,      ///< the operator's rare slow items take what its usual ones take
    kEven,       ///< all items of every operator, and all steps, take their mean
    kWindow,     ///< of a loader that makes batches ahead: those in flight for each worker
    kFreeThreaded,  ///< 1: Python without an interpreter lock
    kOrder,         ///< of the same: 1 in the order in which they were drawn, 0 as they are ready
  };
  Kind kind = Kind::kWorkers;
  int index = -1;  ///< into Profile::operators or queues
  int to = 1;
  double factor = 1;
};

}  // namespace headrace::analysis
