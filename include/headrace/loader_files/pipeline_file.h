// The operators of a dataset pipeline and the levels of their output queues, as MindSpore's MindData saves
// them: pipeline_profiling_<rank>.json, or the table that is made of it, minddata_pipeline_raw_<rank>.csv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// An operator's output queue, read at times. Sample i of all operators is of one moment.
struct QueueSamples {
  std::int64_t capacity = 0;         ///< rows; 0: the file does not say
  std::vector<std::int32_t> levels;  ///< rows in the queue, one for each sample; may be empty
};

struct PipelineOperator {
  std::int64_t id = 0;  ///< the file's; the root usually has 0, but not always
  std::string type;     ///< "MapOp"; old tables have "Map"
  std::optional<int> workers;
  std::vector<std::int64_t> children;  ///< ids; those that the file does not have are left out
  std::optional<QueueSamples> queue;   ///< empty: it has none (it runs inside the operator above it)

  /// "MapOp_1", as reports call it.
  std::string name() const { return type + "_" + std::to_string(id); }
};

struct PipelineFile {
  std::optional<double> interval_ms;  ///< nominal: the monitor's setting, not what passed between two samples
  std::vector<PipelineOperator> operators;  ///< as in the file; ids differ, and they make a forest
  std::vector<std::string> notes;           ///< what was left out, a sentence each

  /// Place in `operators`; -1 if there is none.
  int place(std::int64_t id) const noexcept;
  /// Places of the children of operator `place`.
  std::vector<int> children_of(int place) const;
  /// Place of the operator above; -1 for a root.
  int parent_of(int place) const noexcept;
  /// The operator that no other one has as its child, with most operators below it. -1 without operators.
  int root() const;
  /// `root` and what is below it, children before parents, so in the order of the data flow.
  std::vector<int> in_data_flow(int root) const;
  /// Old versions give each worker a queue of 16 rows; capacities and levels are their sums.
  bool has_queues_per_worker() const noexcept;
  /// Samples of the longest queue record.
  std::size_t samples() const noexcept;
};

/// From the text of pipeline_profiling_<rank>.json; `path` is named in errors. FormatError if it is no such
/// file. Thread-safe.
PipelineFile read_pipeline_profiling(std::string_view text, const std::string& path);

/// From the text of minddata_pipeline_raw_<rank>.csv. Operators without queue are not in it, except the root.
PipelineFile read_pipeline_table(std::string_view text, const std::string& path);

/// Leaves out what keeps the operators from being a forest: ids that come twice, inputs that are not there, a
/// second parent, a circle. Notes each.
void make_forest(PipelineFile& file);

/// "TakeOp", "Take": it has no thread and no queue of its own wherever it stands.
bool is_inlined_type(std::string_view type) noexcept;

}  // namespace headrace::loader_files
