// What a rank's collectives cost, and over which links: hccl_raw_<rank>.csv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// What went over a link.
struct LinkUse {
  std::int64_t source = 0;  ///< rank; the same as `destination` for copies on one device
  std::int64_t destination = 0;
  std::string type;  ///< "SDMA", "RDMA"
  double total_s = 0;
  double bytes = 0;
  std::optional<double> wait_s;  ///< RDMA only

  /// NaN where it took no time. The file's own figure is the sum of those of the single operators.
  double bytes_per_s() const noexcept;
};

struct CollectiveCost {
  double communication_s = 0;
  double wait_s = 0;
  std::vector<LinkUse> links;
};

struct CollectiveOperator {
  std::string name;  ///< "stream_41_0_AllReduce-op4582"
  CollectiveCost cost;
};

struct CollectivesStep {
  std::int64_t number = 0;
  CollectiveCost cost;  ///< communication and wait of the main stream, links of all
  std::vector<CollectiveOperator> operators;
};

struct CollectivesFile {
  std::vector<CollectivesStep> steps;
  std::optional<CollectivesStep> average;  ///< the file's last row; in newer versions a copy of the last step
  std::vector<std::string> notes;
};

/// From the text of the table. Costs are milliseconds, in newer versions microseconds: those give bandwidths in
/// GB/s instead of KB/s, by which they are told apart. Sizes are units of 1000 bytes. A row whose links cannot be
/// read keeps its costs, and is noted. FormatError for a file that is no such table.
CollectivesFile read_collectives(std::string_view text, const std::string& path);

}  // namespace headrace::loader_files
