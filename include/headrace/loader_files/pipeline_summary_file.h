// What MindSpore's own analysis of its samples wrote: minddata_pipeline_summary_<rank>.json or .csv. Averages of
// the whole run; read where the samples themselves are missing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/loader_files/pipeline_file.h"

namespace headrace::loader_files {

struct SummaryOperator {
  std::int64_t id = 0;
  std::string name;  ///< "Map": the type without its last two characters
  std::optional<int> workers;
  std::vector<std::int64_t> children;
  std::optional<double> queue_average_size;  ///< rows; empty: it has no queue
  std::optional<double> queue_utilisation;   ///< mean level / capacity, 0 to 1
  std::optional<double> queue_empty_share;
  std::optional<double> cpu_percent;  ///< 100 is one core
};

struct PipelineSummaryFile {
  std::vector<SummaryOperator> operators;
  std::string bottleneck;  ///< what it names; "": nothing
  std::string suggestion;

  /// The tree without samples. A queue's capacity follows from its average and its use; 0 where it was empty.
  PipelineFile as_pipeline() const;
};

/// From the text of the JSON file. FormatError if it is no such file.
PipelineSummaryFile read_pipeline_summary(std::string_view text, const std::string& path);

/// From the text of the table: a name and its values in each line.
PipelineSummaryFile read_pipeline_summary_table(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
