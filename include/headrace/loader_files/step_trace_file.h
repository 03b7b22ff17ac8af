// The steps that a device ran: step_trace_raw_<rank>_detail_time.csv, and the names of the operators at which
// forward begins and backward ends: step_trace_point_info[_<rank>].json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// A collective of a step.
struct CollectiveTime {
  double start_s = 0;  ///< since the step's start
  double takes_s = 0;
};

struct StepRow {
  std::int64_t number = 0;
  double start_s = 0;  ///< on the device's clock: the end of the step before
  double end_s = 0;
  double total_s = 0;
  double interval_s = 0;  ///< until forward begins
  std::optional<double> forward_backward_s;
  std::optional<double> tail_s;                            ///< empty in inference
  std::vector<std::optional<CollectiveTime>> collectives;  ///< as many as the file has names
};

struct StepTraceFile {
  std::vector<std::string> collectives;  ///< "stream_48_0_AllReduce-op4582"
  std::vector<StepRow> steps;
  std::optional<StepRow> average;  ///< the file's own last row
  std::vector<std::string> notes;
};

/// From the text of the table; its times are ticks of 10 ns. A row that lacks its points is left out and noted.
StepTraceFile read_step_trace(std::string_view text, const std::string& path);

struct StepPoints {
  std::string forward_begins;  ///< operator names; "" where the file does not say
  std::string backward_ends;
};

/// From the text of step_trace_point_info; of a list of steps, the first that names them.
StepPoints read_step_points(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
