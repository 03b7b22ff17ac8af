// When the training loop took batches, and whether each was ready.
#pragma once

#include <optional>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::loader_files {

/// One call for a batch.
struct Call {
  double start_s = 0;
  double wait_s = 0;
  bool ready = false;  ///< the batch was there

  double end_s() const noexcept { return start_s + wait_s; }
};

/// The device's GetNext calls, of the operator that asked most often, because a graph may have several. By
/// start, on the device's clock.
std::vector<Call> calls_on_device(const GetNextFile& file);

/// From the records of batches, in their order, on the clock of the CPU file. Only the ends are stamped; a wait
/// was cut to whole milliseconds, so it began up to one earlier. A batch was ready if
///
///     sink mode          the host queue had a batch before the fetch
///     dataset_iterator   the wait is below a millisecond, or a batch was left in the host queue by the fetch
///                        before it. The latter only where the queue's level counts batches in order, and not
///                        those of several workers' queues.
std::vector<Call> calls_on_host(const RankFiles& files);

}  // namespace headrace::loader_files
