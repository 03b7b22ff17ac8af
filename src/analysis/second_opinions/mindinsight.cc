#include "headrace/analysis/second_opinions/mindinsight.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace headrace::analysis {
namespace {

using loader_files::PipelineFile;
using loader_files::PipelineOperator;

// Its constants.
constexpr double kHigh = 0.8;
constexpr double kLow = 0.6;
constexpr double kMoreThanOutput = 0.1;
constexpr double kHostEmpty = 0.3;
constexpr double kLongInterval_s = 0.5e-3;

/// Inputs that have a queue; in the place of one without, its own inputs.
std::vector<int> inputs_with_queue(const PipelineFile& file, int place) {
  std::vector<int> found;
  std::vector<int> open = file.children_of(place);
  std::reverse(open.begin(), open.end());
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (file.operators[static_cast<std::size_t>(at)].queue) {
      found.push_back(at);
      continue;
    }
    std::vector<int> below = file.children_of(at);
    open.insert(open.end(), below.rbegin(), below.rend());
  }
  return found;
}

const UsageRow* row_of(const std::vector<UsageRow>& table, std::int64_t id) {
  const auto found =
      std::find_if(table.begin(), table.end(), [id](const UsageRow& row) { return row.id == id; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::vector<UsageRow> usage_table(const PipelineFile& file) {
  std::vector<UsageRow> table;
  const int first = file.place(0);
  if (first < 0) return table;
  std::deque<std::pair<int, std::optional<std::int64_t>>> open{{first, std::nullopt}};
  while (!open.empty()) {
    const auto [at, parent] = open.front();
    open.pop_front();
    const PipelineOperator& op = file.operators[static_cast<std::size_t>(at)];
    UsageRow row;
    row.id = op.id;
    row.type = op.type;
    row.parent = parent;
    if (op.queue && op.queue->capacity <= 0) return {};
    if (op.queue && !op.queue->levels.empty()) {
      double sum = 0;
      for (const std::int32_t level : op.queue->levels) sum += level;
      row.usage =
          sum / static_cast<double>(op.queue->levels.size()) / static_cast<double>(op.queue->capacity);
    }
    for (const int child : inputs_with_queue(file, at)) {
      row.children.push_back(file.operators[static_cast<std::size_t>(child)].id);
      open.emplace_back(child, op.id);
    }
    table.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> usage_bottlenecks(const std::vector<UsageRow>& table) {
  std::vector<std::string> named;
  bool all_high = true;
  for (const UsageRow& row : table) {
    if (!row.parent) continue;
    all_high = all_high && row.usage >= kHigh;
    const bool backs_up = std::any_of(row.children.begin(), row.children.end(), [&](std::int64_t child) {
      const UsageRow* input = row_of(table, child);
      return input != nullptr && input->usage - row.usage > kMoreThanOutput;
    });
    if (backs_up) named.push_back(row.name());
  }
  for (const UsageRow& row : table) {
    if (row.parent && row.children.empty() && row.usage < kLow) named.push_back(row.name());
  }
  if (all_high && !table.empty()) return {table.front().name()};
  return named;
}

std::string usage_advice(const std::vector<UsageRow>& table, const std::vector<std::string>& named) {
  if (named.empty() || table.empty() || named.front() == table.front().name()) return "";
  std::string operators;
  for (auto each = named.rbegin(); each != named.rend(); ++each) {
    operators += (operators.empty() ? "" : "/") + *each;
  }
  std::string text = "The " + operators + " operator in the pipeline may have performance bottlenecks.";
  for (const UsageRow& row : table) {
    if (std::find(named.begin(), named.end(), row.name()) == named.end()) continue;
    if (row.children.empty()) {
      text += " " + row.name() + ": you can try to increase or decrease the num_parallel_workers parameter.";
    } else if (row.type == "MapOp") {
      text +=
          " " + row.name() +
          ": num_parallel_workers parameter. If the Python operator is used, you can optimize the training "
          "script.";
    } else if (row.type == "BatchOp") {
      text += " " + row.name() + ": you can increase the prefetch_size value.";
    }
  }
  return text;
}

QueueSummary queue_summary(const loader_files::RankFiles& files) {
  QueueSummary summary;
  const loader_files::BatchRecords* batches = files.batches();
  if (batches == nullptr) return summary;
  for (const loader_files::BatchRecord& each : batches->batches) {
    if (!each.level) continue;
    ++summary.host_records;
    summary.host_empty += *each.level == 0 ? 1 : 0;
  }
  if (files.getnext) {
    for (const loader_files::GetNext& call : files.getnext->calls) {
      ++summary.data_records;
      summary.data_empty += call.level == 0 ? 1 : 0;
    }
  }
  if (summary.host_records == 0) return summary;
  const bool host_is_empty =
      static_cast<double>(summary.host_empty) > kHostEmpty * static_cast<double>(summary.host_records);
  summary.warns_of = host_is_empty            ? QueueStatus::data_process
                     : summary.data_empty > 0 ? QueueStatus::data_transmission
                                              : QueueStatus::device_queue_warning;
  return summary;
}

std::optional<int> machine_active_percent(const loader_files::RankFiles& files) {
  if (!files.cpu || files.cpu->raw_idle.empty()) return std::nullopt;
  double sum = 0;
  for (const double idle : files.cpu->raw_idle) sum += std::isfinite(idle) ? std::clamp(idle, 0.0, 100.0) : 0;
  return 100 - static_cast<int>(std::nearbyint(sum / static_cast<double>(files.cpu->raw_idle.size())));
}

bool shows_operator_advice(const loader_files::RankFiles& files, const QueueSummary& queues,
                           bool has_advice) {
  if (!has_advice || !files.steps || !files.steps->average) return false;
  if (files.steps->average->interval_s <= kLongInterval_s) return false;
  if (queues.host_records == 0) return true;
  return static_cast<double>(queues.host_empty) > kHostEmpty * static_cast<double>(queues.host_records);
}

}  // namespace headrace::analysis
