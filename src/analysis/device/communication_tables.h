// What a profile says about communication as tables, whether it is in JSON or in a database.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::device {

/// Of `communication`, `communication_bandwidth`, `communication_matrix` and `step_trace_time` (of a
/// database), those that the profile has.
std::vector<std::string> communication_tables(const trace::ascend::ProfileFolder& profile);

/// Nothing if no profile has it.
///
///     communication            rank step type operation group start_ns elapse_s transit_s wait_s
///                              synchronisation_s idle_s wait_ratio synchronisation_ratio
///     communication_bandwidth  rank step type operation group transport size_mb transit_s bandwidth_gbps
///                              large_packet_ratio packet_mb packets packets_s
///     communication_matrix     rank step type operation group source target transport size_mb transit_s
///                              bandwidth_gbps slowest
std::optional<Table> communication_table(std::span<const trace::ascend::ProfileFolder> profiles,
                                         const std::string& name);

}  // namespace headrace::analysis::device
