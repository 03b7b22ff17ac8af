#include "headrace/loader_files/pipeline_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr int kMaxWorkers = 1 << 20;
constexpr std::int64_t kLargestQueue = 1LL << 40;

std::optional<int> sensible_workers(std::optional<std::int64_t> workers) {
  if (!workers || *workers < 0 || *workers > kMaxWorkers) return std::nullopt;
  return static_cast<int>(*workers);
}

/// What a full queue counts is at most its capacity; a level is never negative.
std::int32_t sensible_level(std::int64_t level) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(level, 0, std::numeric_limits<std::int32_t>::max()));
}

std::int64_t sensible_capacity(std::optional<std::int64_t> capacity) {
  return capacity && *capacity > 0 && *capacity <= kLargestQueue ? *capacity : 0;
}

/// Empty where the operator has no queue.
std::optional<QueueSamples> queue_of(Json op) {
  const std::optional<Json> metrics = member(op, "metrics");
  const std::optional<Json> queue = metrics ? member(*metrics, "output_queue") : std::nullopt;
  if (!queue) return std::nullopt;
  QueueSamples samples;
  const std::optional<Json> length = member(*queue, "length");
  samples.capacity = sensible_capacity(length ? integer_of(*length) : std::nullopt);
  if (const auto sizes = array_of(*queue, "size")) {
    samples.levels.reserve(sizes->size());
    for (const Json size : *sizes) samples.levels.push_back(sensible_level(integer_of(size).value_or(0)));
  }
  return samples;
}

PipelineOperator operator_of(Json op, const std::string& path) {
  const std::optional<Json> id = member(op, "op_id");
  const std::optional<Json> type = member(op, "op_type");
  const std::optional<std::int64_t> number = id ? integer_of(*id) : std::nullopt;
  const std::optional<std::string> name = type ? text_of(*type) : std::nullopt;
  if (!number || !name) throw FormatError(path, 0, "an op_id and an op_type in each entry of op_info");
  PipelineOperator made;
  made.id = *number;
  made.type = *name;
  const std::optional<Json> workers = member(op, "num_workers");
  made.workers = sensible_workers(workers ? integer_of(*workers) : std::nullopt);
  if (const auto children = array_of(op, "children")) {
    for (const Json child : *children) {
      if (made.children.size() >= kMaxOperators) break;
      if (const std::optional<std::int64_t> of = integer_of(child)) made.children.push_back(*of);
    }
  }
  made.queue = queue_of(op);
  return made;
}

}  // namespace

int PipelineFile::place(std::int64_t id) const noexcept {
  const auto found = std::find_if(operators.begin(), operators.end(),
                                  [id](const PipelineOperator& op) { return op.id == id; });
  return found == operators.end() ? -1 : static_cast<int>(found - operators.begin());
}

std::vector<int> PipelineFile::children_of(int at) const {
  std::vector<int> places;
  for (const std::int64_t child : operators[static_cast<std::size_t>(at)].children) {
    if (const int where = place(child); where >= 0) places.push_back(where);
  }
  return places;
}

int PipelineFile::parent_of(int at) const noexcept {
  const std::int64_t id = operators[static_cast<std::size_t>(at)].id;
  const auto found = std::find_if(operators.begin(), operators.end(), [id](const PipelineOperator& op) {
    return std::find(op.children.begin(), op.children.end(), id) != op.children.end();
  });
  return found == operators.end() ? -1 : static_cast<int>(found - operators.begin());
}

std::vector<int> PipelineFile::in_data_flow(int root) const {
  // Parents first, last child first; turned round, children come first and in their order.
  std::unordered_map<std::int64_t, int> place_of;
  for (std::size_t i = 0; i < operators.size(); ++i) place_of.emplace(operators[i].id, static_cast<int>(i));
  std::vector<int> order;
  std::vector<int> open;
  std::vector<bool> seen(operators.size(), false);
  if (root >= 0 && static_cast<std::size_t>(root) < operators.size()) open.push_back(root);
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (seen[static_cast<std::size_t>(at)]) continue;
    seen[static_cast<std::size_t>(at)] = true;
    order.push_back(at);
    for (const std::int64_t child : operators[static_cast<std::size_t>(at)].children) {
      if (const auto found = place_of.find(child); found != place_of.end()) open.push_back(found->second);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

int PipelineFile::root() const {
  std::unordered_set<std::int64_t> below;
  for (const PipelineOperator& op : operators) below.insert(op.children.begin(), op.children.end());
  int best = -1;
  std::size_t most = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (below.contains(operators[i].id)) continue;
    const std::size_t count = in_data_flow(static_cast<int>(i)).size();
    if (count <= most) continue;
    most = count;
    best = static_cast<int>(i);
  }
  return best;
}

bool PipelineFile::has_queues_per_worker() const noexcept {
  constexpr std::int64_t kRowsPerWorker = 16;
  return std::all_of(operators.begin(), operators.end(),
                     [](const PipelineOperator& op) {
                       return !op.queue || (op.workers && op.queue->capacity == kRowsPerWorker * *op.workers);
                     }) &&
         std::any_of(operators.begin(), operators.end(),
                     [](const PipelineOperator& op) { return op.queue && op.workers.value_or(1) > 1; });
}

std::size_t PipelineFile::samples() const noexcept {
  std::size_t most = 0;
  for (const PipelineOperator& op : operators) {
    if (op.queue) most = std::max(most, op.queue->levels.size());
  }
  return most;
}

PipelineFile read_pipeline_profiling(std::string_view text, const std::string& path) {
  const JsonDocument document(text, path);
  const std::optional<simdjson::dom::array> operators = array_of(document.root(), "op_info");
  if (!operators) throw FormatError(path, 0, "a list \"op_info\" of a pipeline's operators");
  PipelineFile file;
  const std::optional<Json> interval = member(document.root(), "sampling_interval");
  if (interval) file.interval_ms = number_of(*interval);
  for (const Json op : *operators) {
    if (file.operators.size() >= kMaxOperators)
      throw FormatError(path, 0, "at most " + std::to_string(kMaxOperators) + " operators");
    file.operators.push_back(operator_of(op, path));
  }
  if (file.operators.empty()) throw FormatError(path, 0, "at least one operator in \"op_info\"");
  make_forest(file);
  return file;
}

PipelineFile read_pipeline_table(std::string_view text, const std::string& path) {
  const std::vector<Row> rows = rows_of(text, path);
  const Heading heading(rows.empty() ? Row{} : rows.front());
  if (heading.place("op_id") < 0 || heading.place("op_type") < 0)
    throw FormatError(path, 0, "a table of operators with the columns op_id and op_type");
  PipelineFile file;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::optional<std::int64_t> id = whole_number(heading.value(row, "op_id"));
    if (!id) throw FormatError(path, 0, "a number as op_id in row " + std::to_string(i));
    if (file.operators.size() >= kMaxOperators)
      throw FormatError(path, 0, "at most " + std::to_string(kMaxOperators) + " operators");
    PipelineOperator op;
    op.id = *id;
    op.type = heading.value(row, "op_type");
    op.workers = sensible_workers(whole_number(heading.value(row, "num_workers")));
    op.children = list_of(heading.value(row, "children_id")).value_or(std::vector<std::int64_t>{});
    const auto sizes = list_of(heading.value(row, "output_queue_size"));
    const std::int64_t length = sensible_capacity(whole_number(heading.value(row, "output_queue_length")));
    if (sizes || length > 0) {
      op.queue.emplace().capacity = length;
      for (const std::int64_t size : sizes.value_or(std::vector<std::int64_t>{}))
        op.queue->levels.push_back(sensible_level(size));
    }
    if (const std::optional<double> interval = number(heading.value(row, "sample_interval")))
      file.interval_ms = interval;
    file.operators.push_back(std::move(op));
  }
  if (file.operators.empty()) throw FormatError(path, 0, "at least one operator below the heading");
  make_forest(file);
  return file;
}

void make_forest(PipelineFile& file) {
  std::unordered_set<std::int64_t> known;
  std::erase_if(file.operators, [&](const PipelineOperator& op) {
    if (known.insert(op.id).second) return false;
    file.notes.push_back("operator " + std::to_string(op.id) + " is in the file twice; the first is shown");
    return true;
  });
  std::unordered_map<std::int64_t, std::int64_t> parent;
  for (PipelineOperator& op : file.operators) {
    std::erase_if(op.children, [&](std::int64_t child) {
      if (!known.contains(child)) {
        file.notes.push_back("operator " + std::to_string(child) + ", an input of " + op.name() +
                             ", is not in the file");
        return true;
      }
      // Up from `op`: a way back to the child would be a circle.
      std::int64_t above = op.id;
      for (std::size_t step = 0; step <= file.operators.size() && above != child; ++step) {
        const auto up = parent.find(above);
        if (up == parent.end()) break;
        above = up->second;
      }
      if (above != child && parent.emplace(child, op.id).second) return false;
      file.notes.push_back("the inputs of " + op.name() + " make no tree; one was left out");
      return true;
    });
  }
}

bool is_inlined_type(std::string_view type) noexcept {
  if (type.ends_with("Op")) type.remove_suffix(2);
  constexpr std::array<std::string_view, 8> kInlined{"Repeat", "Take",   "Skip",      "Rename",
                                                     "Zip",    "Concat", "EpochCtrl", "Project"};
  return std::find(kInlined.begin(), kInlined.end(), type) != kInlined.end();
}

}  // namespace headrace::loader_files
