// MindInsight's rules on MindData's files, from their behaviour (docs/mindspore.md): which operators its
// data-preparation page names, which stage its queue summary warns of, and what its helper panel then shows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::analysis {

/// An operator as its table has it: those without a queue are left out, except the first.
struct UsageRow {
  std::int64_t id = 0;
  std::string type;
  double usage = 0;  ///< mean level / capacity; 0 without samples
  std::optional<std::int64_t> parent;
  std::vector<std::int64_t> children;

  std::string name() const { return type + "_" + std::to_string(id); }
};

/// From operator 0 on, breadth first; the inputs of an operator without queue become those of the one above.
/// Empty where there is no operator 0, or where a queue's capacity or samples are missing.
std::vector<UsageRow> usage_table(const loader_files::PipelineFile& file);

/// Names of the operators that it calls bottlenecks, in its order. Rules, in order: an operator (other than
/// the first) whose input is used more than its output by over 0.1; then every leaf below 0.6; but if no
/// operator other than the first is below 0.8, the first alone.
std::vector<std::string> usage_bottlenecks(const std::vector<UsageRow>& table);

/// What it says of them, in English; "" where it says nothing (only the first operator was named).
std::string usage_advice(const std::vector<UsageRow>& table, const std::vector<std::string>& named);

enum class QueueStatus : std::uint8_t { unknown, data_process, data_transmission, device_queue_warning };

struct QueueSummary {
  QueueStatus warns_of = QueueStatus::unknown;
  std::size_t host_empty = 0;
  std::size_t host_records = 0;
  std::size_t data_empty = 0;
  std::size_t data_records = 0;
};

/// Host queue empty at more than 30 % of the batches: data processing; else, in sink mode, any empty data
/// queue: transmission; else the operators.
QueueSummary queue_summary(const loader_files::RankFiles& files);

/// 100 - rounded mean of all idle values of the file, repeats included; empty without the file.
std::optional<int> machine_active_percent(const loader_files::RankFiles& files);

/// Its helper panel: the operators' lines are shown only where the step trace's mean interval is over 0.5 ms,
/// and hidden where the host queue is empty at 30 % of the batches or less.
bool shows_operator_advice(const loader_files::RankFiles& files, const QueueSummary& queues, bool has_advice);

}  // namespace headrace::analysis
