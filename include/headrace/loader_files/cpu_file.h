// The CPU time of the machine, the process and each operator: minddata_cpu_utilization_<rank>.json.
//
// The writer's arrays have different lengths, by version and by entry. A series here has one value for each of
// its own time stamps, so that nobody above has to know:
//
//     N time stamps.  N values: value i is of the time up to stamp i, and the first, taken before anything had
//     passed, is left out.   N - 1 values: value i is of the time up to stamp i + 1.   2 N values: every second
//     one is a repeat; N values beside a 2 N entry of the same group: the first half of such a series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::loader_files {

struct TimedSeries {
  std::vector<double> end_ms;  ///< value i is of the time from the stamp before this one up to it
  std::vector<double> values;  ///< as many

  bool empty() const noexcept { return values.empty(); }
  /// Mean of the values in (from_ms, to_ms]; empty if there is none.
  std::optional<double> mean_between(double from_ms, double to_ms) const noexcept;
  std::optional<double> mean() const noexcept;
};

struct OperatorCpu {
  std::int64_t id = 0;
  TimedSeries percent;  ///< user and system; 100 is one core; threads and worker processes together
};

struct CpuFile {
  std::optional<double> interval_ms;
  std::optional<int> cores;
  std::vector<double> time_stamps_ms;  ///< growing
  TimedSeries idle_percent;            ///< of the machine, 100: nothing ran
  TimedSeries io_percent;
  TimedSeries user_percent;
  TimedSeries system_percent;
  TimedSeries process_percent;  ///< user and system; 100 is one core; without worker processes
  std::vector<OperatorCpu> operators;
  std::optional<double> resident_bytes;  ///< of the process, the last value
  std::vector<std::string> notes;

  // As the file has them, for rules that are defined on the arrays themselves.
  std::vector<double> raw_idle;
  std::vector<std::pair<std::int64_t, std::vector<double>>> raw_operators;  ///< user + system by id
};

/// From the file's text. FormatError if it is no such file. An array of no known length is left out and noted.
CpuFile read_cpu(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
