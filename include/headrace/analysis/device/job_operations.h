// The operations of a pipeline- and data-parallel job (analysis/job) from the device trace of one of its ranks.
//
//     const RankOperations found = job_operations(trace, trace::process_groups(trace.file), rank, steps);
//     if (!found.missing.empty()) std::cout << found.missing << '\n';
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/analysis/job/operations.h"
#include "headrace/trace/process_groups.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct RankOperations {
  /// By start, on the clock of the file.
  job::Operations operations;
  /// Why there are no operations: what the trace does not record, and how to add it. Empty if there are some.
  std::string missing;
  /// The trace names micro-batches or a pipeline, so its reader expects operations.
  bool expected = true;
};

/// Operations of the rank in `steps` (N of `ProfilerStep#N`):
///
///     compute      the kernels that were launched in a range "Forward 3" or "Backward 3" (a micro-batch), or
///                  "PP:1F3", "PP:1B3" (stage, then micro-batch), from the first start to the last end
///     send, recv   point-to-point kernels, by the range "PP:1SEND_F3" around the launch, else by the peer
///                  ("Src Rank", "Dst Rank") and its place in the pipeline's group. The transfers of a batch share a
///                  `kernel`; the calls of a stage with several outputs are one transfer
///     all-gather   of the data-parallel group, launched before the first computation of the step. Later ones are
///                  part of the compute during which they run
///     reduce-scatter, all-reduce   of the data-parallel group, from the first backward on: the part behind the
///                  last backward, because the rest is hidden
///     clip         all-reduces over the stages behind the last backward; embedding: of its group
///     optimizer    computations that were launched behind the last backward
///
/// The data-parallel rank and the stage are the rank's places in `groups`. Without any group of a pipeline or of
/// data-parallel ranks, all ranks are data-parallel. `stages`, the ranks of each stage, replaces the descriptions:
/// a group within a stage is data-parallel, and the pipeline has one rank of each stage. `input_s` of a compute is
/// the part of the gap before it in which the host waited for a batch (loader_waits.h).
RankOperations job_operations(const trace::Trace& trace, const std::vector<trace::ProcessGroup>& groups,
                              std::int64_t rank, const std::vector<std::int64_t>& steps,
                              const std::vector<std::vector<std::int64_t>>& stages = {});

}  // namespace headrace::analysis::device
