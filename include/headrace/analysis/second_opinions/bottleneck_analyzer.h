// The summary that MindSpore's profiler writes of its own samples (minddata_pipeline_summary), and the
// bottleneck that it names in it, from their behaviour (docs/mindspore.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/loader_files/rank_files.h"

namespace headrace::analysis {

/// One entry for each operator, by id. -1: not known.
struct PipelineSummary {
  std::vector<std::string> pipeline_ops;  ///< "Batch(id=0)"
  std::vector<std::string> op_names;
  std::vector<std::int64_t> op_ids;
  std::vector<int> num_workers;
  std::vector<double> queue_average_size;
  std::vector<double> queue_utilization_pct;
  std::vector<double> queue_empty_freq_pct;
  std::vector<std::vector<std::int64_t>> children_ids;
  std::vector<std::int64_t> parent_id;
  std::vector<double> avg_cpu_pct;
  std::vector<double> avg_cpu_pct_per_worker;
  // Means in milliseconds, the first batch left out; empty without the batches' file. Of an iterator's file,
  // the time of a batch is the mean of its waits and of what lies between its stamps, which is neither.
  std::optional<double> per_batch_time;
  std::optional<double> per_pipeline_time;
  std::optional<double> per_push_queue_time;

  std::vector<std::string> cpu_analysis_details;
  std::vector<std::string> queue_analysis_details;
  std::string bottleneck_warning;  ///< the operator; "": none
  std::string bottleneck_suggestion;
};

/// Thread-safe; never fails. Empty lists without a pipeline file.
PipelineSummary pipeline_summary(const loader_files::RankFiles& files);

/// A number as the summary's sentences have it: two decimals at most, one at least.
std::string short_number(double value);

}  // namespace headrace::analysis
