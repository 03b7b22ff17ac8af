// Waits between operations of one step, and operations that end together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/analysis/job/operations.h"

namespace headrace::analysis::job {

struct Dependencies {
  /// By position in `members`: positions that must have ended before.
  std::vector<std::vector<std::uint32_t>> needs;
  /// Positions that end together: pairs of send and receive, collectives. Every operation is in one group.
  std::vector<std::vector<std::uint32_t>> groups;
  /// By position in `members`: transfers that are one kernel with another one of the same worker.
  std::vector<bool> in_batch;
  /// Sends and receives whose partner was not recorded. Those of the pipeline's ends, which have none, are not
  /// counted.
  std::size_t unpaired = 0;
};

/// Dependencies of `members`, all of one step.
///
/// A worker's streams run in order of start: compute, each of the four directions between stages, the
/// data-parallel collectives. The n-th receive of a direction precedes the n-th compute of that direction and
/// follows the one before; a send follows its compute. Sends and receives at the ends of the pipeline
/// belong to no pair. Paired transfers of one kernel start when all of them can, and what waits for one of them
/// waits for all. The gathering of a chunk's parameters precedes its first forward. A step ends with: last compute,
/// collection, all-reduces of layer norms and embeddings, reduce-scatters (or, if these overlap the
/// backward pass, the separate all-reduce), clip, optimizer.
Dependencies dependencies_of(const Operations& operations, std::span<const std::uint32_t> members);

}  // namespace headrace::analysis::job
