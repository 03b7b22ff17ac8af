// Operations of a training job's ranks, one a row: the input of a JobSimulation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::analysis::job {

/// The operations of a step of pipeline- and data-parallel training.
enum class OperationType : std::uint8_t {
  forward_compute,
  backward_compute,
  forward_send,  ///< activations to the next stage
  forward_recv,
  backward_send,  ///< gradients to the stage before
  backward_recv,
  params_all_gather,  ///< over data-parallel ranks, as the two below
  grads_reduce_scatter,
  separate_grads_all_reduce,  ///< present if the reduce-scatters overlap the backward pass
  layernorm_grads_all_reduce,
  embedding_grads_all_reduce,  ///< first with last stage
  optimizer_clip_main_grad,    ///< over all stages
  optimizer,
  gc,  ///< Python's garbage collection
};

inline constexpr std::size_t kOperationTypes = 14;

/// As files write them: `forward-compute`, `grads-reduce-scatter`.
std::string_view name_of(OperationType type) noexcept;
std::optional<OperationType> operation_type(std::string_view name) noexcept;

/// Types that are judged together: `forward-pp-comm` is `forward-send` and `forward-recv`, `backward-pp-comm`
/// the other two; every other type is alone under its own name.
std::string_view kind_of(OperationType type) noexcept;

/// One row an operation, in any order. A worker is a data-parallel rank of a stage.
struct Operation {
  OperationType type = OperationType::forward_compute;
  std::int32_t dp_rank = 0;
  std::int32_t stage = 0;
  std::int64_t step = 0;
  double start_s = 0;
  double duration_s = 0;
  /// The n-th of its type in this step on this worker.
  std::int64_t sequence = 0;
  /// Model chunk within the stage, for interleaved schedules, and within the model; -1 if unknown.
  std::int32_t chunk = -1;
  std::int32_t model_chunk = -1;
  std::int32_t micro_batch = -1;
  /// The part of the delay before it, up to its start, in which the host waited for a batch.
  double input_s = 0;
  /// Transfers of a worker and a step with the same number are one kernel, a batch; -1: alone, or unknown.
  std::int32_t kernel = -1;

  double end_s() const noexcept { return start_s + duration_s; }
};

using Operations = std::vector<Operation>;

/// Operations as columns of one length, as in files. `sequence` and the five behind it may be empty: 0 and
/// unknown, without waits for the input.
struct OperationColumns {
  std::vector<std::string> type;
  std::vector<std::int64_t> dp_rank, stage, step;
  std::vector<double> start_s, duration_s;
  std::vector<std::int64_t> sequence, chunk, model_chunk, micro_batch;
  std::vector<double> input_s;
  std::vector<std::int64_t> kernel;
};

/// UsageError if columns differ in length, if a type has no known name, or if a rank, stage, chunk, micro-batch
/// or kernel is not between -1 and 2^24; it says which row.
Operations operations_of(const OperationColumns& columns);

}  // namespace headrace::analysis::job
