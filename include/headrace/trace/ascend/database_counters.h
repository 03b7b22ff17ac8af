// Counters of a profile's database: frequency of the cores, memory, bandwidths; what trace_view.json has as
// "C".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace headrace::trace {
class Database;
}

namespace headrace::trace::ascend {

/// A counter over time.
struct Counter {
  std::string process;                                  ///< the row of the timeline: "HBM"
  std::int64_t pid = 0;                                 ///< of that row, as in trace_view.json
  std::string name;                                     ///< "HBM 0/Read"
  std::string unit;                                     ///< "Read(MB/s)"; MB is 2^20 bytes, KB is 2^10
  std::vector<std::pair<std::int64_t, double>> values;  ///< nanoseconds and value, in the order of the file
};

/// From the tables AICORE_FREQ, HBM, LLC, NPU_MEM, SOC_BANDWIDTH_LEVEL and ACC_PMU, those that there are.
/// Rows without a moment or a value are left out. Nothing of a file that is no database.
std::vector<Counter> read_counters(const std::string& path);
std::vector<Counter> read_counters(Database& database);

}  // namespace headrace::trace::ascend
