#include "headrace/analysis/job/operations.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "headrace/profile/errors.h"

namespace headrace::analysis::job {
namespace {

constexpr std::array<std::string_view, kOperationTypes> kNames = {"forward-compute",
                                                                  "backward-compute",
                                                                  "forward-send",
                                                                  "forward-recv",
                                                                  "backward-send",
                                                                  "backward-recv",
                                                                  "params-all-gather",
                                                                  "grads-reduce-scatter",
                                                                  "separate-grads-all-reduce",
                                                                  "layernorm-grads-all-reduce",
                                                                  "embedding-grads-all-reduce",
                                                                  "optimizer-clip-main-grad",
                                                                  "optimizer",
                                                                  "gc"};

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

[[noreturn]] void refuse(std::size_t row, const std::string& why) {
  throw UsageError("operation " + std::to_string(row) + ": " + why);
}

std::int32_t number_at(const std::vector<std::int64_t>& column, std::size_t row, const char* name) {
  if (column.empty()) return -1;
  if (column[row] < -1 || column[row] > kLargest)
    refuse(row, std::string(name) + " " + std::to_string(column[row]) + " is not between -1 and 2^24");
  return static_cast<std::int32_t>(column[row]);
}

}  // namespace

std::string_view name_of(OperationType type) noexcept { return kNames[static_cast<std::size_t>(type)]; }

std::optional<OperationType> operation_type(std::string_view name) noexcept {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<OperationType>(found - kNames.begin());
}

std::string_view kind_of(OperationType type) noexcept {
  switch (type) {
    case OperationType::forward_send:
    case OperationType::forward_recv:
      return "forward-pp-comm";
    case OperationType::backward_send:
    case OperationType::backward_recv:
      return "backward-pp-comm";
    default:
      return name_of(type);
  }
}

Operations operations_of(const OperationColumns& columns) {
  const std::size_t rows = columns.type.size();
  const bool complete = columns.dp_rank.size() == rows && columns.stage.size() == rows &&
                        columns.step.size() == rows && columns.start_s.size() == rows &&
                        columns.duration_s.size() == rows;
  bool fits = complete;
  for (const auto* column :
       {&columns.sequence, &columns.chunk, &columns.model_chunk, &columns.micro_batch, &columns.kernel})
    fits = fits && (column->empty() || column->size() == rows);
  fits = fits && (columns.input_s.empty() || columns.input_s.size() == rows);
  if (!fits) throw UsageError("the columns of a job's operations differ in length");
  Operations operations;
  operations.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto type = operation_type(columns.type[row]);
    if (!type) refuse(row, "the type '" + columns.type[row].substr(0, 64) + "' is unknown");
    Operation operation;
    operation.type = *type;
    operation.dp_rank = number_at(columns.dp_rank, row, "dp_rank");
    operation.stage = number_at(columns.stage, row, "stage");
    operation.step = columns.step[row];
    operation.start_s = columns.start_s[row];
    operation.duration_s = columns.duration_s[row];
    if (!columns.sequence.empty()) operation.sequence = columns.sequence[row];
    operation.chunk = number_at(columns.chunk, row, "chunk");
    operation.model_chunk = number_at(columns.model_chunk, row, "model_chunk");
    operation.micro_batch = number_at(columns.micro_batch, row, "micro_batch");
    if (!columns.input_s.empty()) operation.input_s = columns.input_s[row];
    operation.kernel = number_at(columns.kernel, row, "kernel");
    operations.push_back(operation);
  }
  return operations;
}

}  // namespace headrace::analysis::job
