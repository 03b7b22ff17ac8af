#include "headrace/analysis/second_opinions/bottleneck_analyzer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace headrace::analysis {
namespace {

using loader_files::PipelineFile;
using loader_files::PipelineOperator;

// Its constants, in percent.
constexpr double kBusyWorker = 75;
constexpr double kIdleWorker = 20;
constexpr double kLeafQueue = 50;
constexpr double kFeederStarves = 60;
constexpr double kInputOverOutput = 50;
constexpr double kInputEmpty = 10;

double rounded(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return std::strtod(text, nullptr);
}

std::string_view without_op(const std::string& type) {
  std::string_view name = type;
  name.remove_suffix(std::min<std::size_t>(2, name.size()));
  return name;
}

/// Those that it does not judge: they have one thread.
bool is_skipped(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{"Barrier", "Concat", "EpochCtrl", "Rename", "Repeat",
                                                   "Shuffle", "Skip",   "Take",      "Zip"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

class Analyzer {
 public:
  explicit Analyzer(const loader_files::RankFiles& files) : files_(files) {}

  PipelineSummary build() {
    if (files_.pipeline) add_operators();
    add_times();
    // Where the two files do not have the same operators, it says nothing.
    if (!files_.pipeline || !files_.cpu ||
        files_.cpu->raw_operators.size() != files_.pipeline->operators.size())
      return std::move(summary_);
    analyse_cpu();
    analyse_queues();
    find_bottleneck();
    return std::move(summary_);
  }

 private:
  void add_operators() {
    const PipelineFile& file = *files_.pipeline;
    std::vector<int> order(file.operators.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return file.operators[static_cast<std::size_t>(a)].id < file.operators[static_cast<std::size_t>(b)].id;
    });
    for (const int at : order) add_operator(at);
  }

  void add_operator(int at) {
    const PipelineOperator& op = files_.pipeline->operators[static_cast<std::size_t>(at)];
    const std::string name(without_op(op.type));
    summary_.op_ids.push_back(op.id);
    summary_.op_names.push_back(name);
    summary_.pipeline_ops.push_back(name + "(id=" + std::to_string(op.id) + ")");
    summary_.num_workers.push_back(op.workers.value_or(0));
    summary_.children_ids.push_back(op.children);
    const int parent = files_.pipeline->parent_of(at);
    summary_.parent_id.push_back(
        parent < 0 ? -1 : files_.pipeline->operators[static_cast<std::size_t>(parent)].id);
    double average = -1;
    double used = -1;
    double empty = -1;
    if (op.queue && op.queue->capacity > 0 && !op.queue->levels.empty()) {
      const auto count = static_cast<double>(op.queue->levels.size());
      double sum = 0;
      for (const std::int32_t level : op.queue->levels) sum += level;
      average = rounded(sum / count);
      used = rounded(100 * average / static_cast<double>(op.queue->capacity));  // of the rounded mean
      const auto zeros = std::count(op.queue->levels.begin(), op.queue->levels.end(), 0);
      empty = rounded(100 * static_cast<double>(zeros) / count);
    }
    summary_.queue_average_size.push_back(average);
    summary_.queue_utilization_pct.push_back(used);
    summary_.queue_empty_freq_pct.push_back(empty);
    const double cpu = mean_cpu(op.id);
    summary_.avg_cpu_pct.push_back(cpu);
    const int workers = op.workers.value_or(0);
    summary_.avg_cpu_pct_per_worker.push_back(workers > 0 && cpu >= 0 ? rounded(cpu_exact_ / workers) : -1);
  }

  double mean_cpu(std::int64_t id) {
    cpu_exact_ = -1;
    if (!files_.cpu) return -1;
    for (const auto& [of, values] : files_.cpu->raw_operators) {
      if (of != id || values.empty()) continue;
      double sum = 0;
      for (const double value : values) sum += std::isfinite(value) ? value : 0;
      cpu_exact_ = sum / static_cast<double>(values.size());
      return rounded(cpu_exact_);
    }
    return -1;
  }

  void add_times() {
    const loader_files::BatchRecords* records = files_.batches();
    if (records == nullptr || !records->has_times || records->batches.size() < 2) return;
    double waits = 0;
    double pushes = 0;
    double totals = 0;
    double between = 0;
    const auto& batches = records->batches;
    const auto count = static_cast<double>(batches.size() - 1);
    for (std::size_t i = 1; i < batches.size(); ++i) {
      waits += batches[i].wait_ms.value_or(0);
      pushes += batches[i].push_ms.value_or(0);
      totals += batches[i].total_ms.value_or(0);
      between += batches[i].end_ms.value_or(0) - batches[i - 1].end_ms.value_or(0);
    }
    constexpr double kThousand = 1000;
    const auto thousandth = [](double value) { return std::nearbyint(value * kThousand) / kThousand; };
    summary_.per_pipeline_time = thousandth(waits / count);
    summary_.per_push_queue_time = thousandth(pushes / count);
    summary_.per_batch_time =
        thousandth(files_.device_queue ? totals / count : (totals + between) / (2 * count));
  }

  /// Place in the lists of the first input with a queue, through those without; -1: none.
  int input_of(std::size_t at) const {
    for (std::size_t step = 0; step < summary_.op_ids.size(); ++step) {
      if (summary_.children_ids[at].empty()) return -1;
      const auto found =
          std::find(summary_.op_ids.begin(), summary_.op_ids.end(), summary_.children_ids[at].front());
      if (found == summary_.op_ids.end()) return -1;
      at = static_cast<std::size_t>(found - summary_.op_ids.begin());
      if (summary_.queue_utilization_pct[at] >= 0) return static_cast<int>(at);
    }
    return -1;
  }

  void analyse_cpu() {
    for (std::size_t i = 0; i < summary_.op_ids.size(); ++i) {
      const double cpu = summary_.avg_cpu_pct_per_worker[i];
      if (is_skipped(summary_.op_names[i]) || cpu < 0) continue;
      const std::string workers = std::to_string(summary_.num_workers[i]);
      const std::string uses =
          summary_.pipeline_ops[i] + " is using " + short_number(cpu) + "% CPU per worker. ";
      if (cpu > kBusyWorker) {
        summary_.cpu_analysis_details.push_back(uses + "Setting num_parallel_workers>" + workers +
                                                " might bring extra performance.");
      } else if (cpu < kIdleWorker && summary_.num_workers[i] > 1) {
        summary_.cpu_analysis_details.push_back(
            uses + "Using num_parallel_workers=" + workers +
            " might not bring as much benefit due to low CPU usage per worker.");
      }
    }
  }

  void analyse_queues() {
    for (std::size_t i = 0; i < summary_.op_ids.size(); ++i) {
      const std::string& name = summary_.op_names[i];
      if (is_skipped(name) || name == "Batch") continue;
      const std::string& op = summary_.pipeline_ops[i];
      const double out = summary_.queue_utilization_pct[i];
      const int input = input_of(i);
      if (summary_.children_ids[i].empty()) {
        if (out >= 0 && out < kLeafQueue) {
          summary_.queue_analysis_details.push_back(
              "Leaf op " + op + " is using " + short_number(out) + "% of its output queue. " +
              "Setting num_parallel_workers>" + std::to_string(summary_.num_workers[i]) +
              " might speed up I/O.");
        }
        continue;
      }
      if (input < 0) continue;
      const auto from = static_cast<std::size_t>(input);
      const double in = summary_.queue_utilization_pct[from];
      const double empty = summary_.queue_empty_freq_pct[from];
      if (name == "DeviceQueue") {
        if (empty > kFeederStarves) {
          summary_.queue_analysis_details.push_back(
              op + "'s input queue is empty " + short_number(empty) +
              "% of the time. This might indicate dataset bottlenecks. Hence host cannot keep up with the "
              "device " +
              short_number(empty) + "% of the time. Device waits whenever input queue is empty.");
        }
      } else if (out >= 0 && in - out > kInputOverOutput) {
        summary_.queue_analysis_details.push_back(
            op + "'s input queue usage=" + short_number(in) +
            "% is greater than output queue usage=" + short_number(out) + "%. This indicates child op " +
            summary_.pipeline_ops[from] + " might be producing faster than its parent " + op +
            " can consume. If this op has low CPU utilization, try increasing prefetch_size or increasing "
            "num_workers.");
      }
    }
  }

  /// From the leaf to the loop; the last that matches is kept.
  void find_bottleneck() {
    for (std::size_t i = summary_.op_ids.size(); i-- > 0;) {
      const std::string& op = summary_.pipeline_ops[i];
      if (is_skipped(summary_.op_names[i]) || summary_.op_names[i] == "DeviceQueue") continue;
      const double cpu = summary_.avg_cpu_pct_per_worker[i];
      if (cpu < 0) continue;
      if (cpu > kBusyWorker) {
        summary_.bottleneck_warning = op;
        summary_.bottleneck_suggestion = op + " has high CPU utilization per worker of " + short_number(cpu) +
                                         "% Try increasing num_parallel_workers above " +
                                         std::to_string(summary_.num_workers[i]) + ".";
        continue;
      }
      const int input = input_of(i);
      if (cpu >= kIdleWorker || input < 0) continue;
      const double in = summary_.queue_utilization_pct[static_cast<std::size_t>(input)];
      const double out = summary_.queue_utilization_pct[i];
      if (in >= kInputEmpty && !(out - in > kInputOverOutput)) continue;
      summary_.bottleneck_warning = op;
      summary_.bottleneck_suggestion = op + " has low CPU utilization per worker of " + short_number(cpu) +
                                       "% and abnormal queue usage. Try increasing prefetch_size.";
    }
  }

  const loader_files::RankFiles& files_;
  PipelineSummary summary_;
  double cpu_exact_ = -1;
};

}  // namespace

std::string short_number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string number = text;
  if (number.ends_with('0')) number.pop_back();
  return number;
}

PipelineSummary pipeline_summary(const loader_files::RankFiles& files) { return Analyzer(files).build(); }

}  // namespace headrace::analysis
