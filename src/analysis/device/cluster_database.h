// cluster_analysis.db: what the vendor's tool made of a cluster's databases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/cluster.h"
#include "trace/database.h"

namespace headrace::analysis::device {

/// Adds the steps of ranks and stages, operations, bandwidths and links that its tables ClusterStepTraceTime,
/// ClusterCommunicationTime, -Bandwidth and -Matrix have; CommunicationGroupMapping tells which groups are point to
/// point. A table that is missing is noted. FormatError for a file that is no such database.
void read_cluster_database(const std::string& path, ClusterData& data);
void read_cluster_database(trace::Database& database, ClusterData& data);

/// The ranks in "(0, 1, 2)", in their order.
std::vector<std::int64_t> ranks_in(std::string_view text);

/// Adds a set that is neither empty nor there already.
void add_set(std::vector<std::int64_t> ranks, std::vector<std::vector<std::int64_t>>& sets);

}  // namespace headrace::analysis::device
