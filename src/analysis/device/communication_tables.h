// What a profile says about communication as tables, whether it is in JSON or in a database.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/trace/ascend/communication.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::device {

/// Of `communication`, `communication_bandwidth` and `communication_matrix`, those that the profile has.
std::vector<std::string> communication_tables(const trace::ascend::ProfileFolder& profile);

using CommunicationColumns = ColumnList<OperationColumns, Integer<"start_ns">, Number<"elapse_s">,
                                        Number<"transit_s">, Number<"wait_s">, Number<"synchronisation_s">,
                                        Number<"idle_s">, Number<"wait_ratio", "Of wait and transit.">,
                                        Number<"synchronisation_ratio", "Of synchronisation and transit.">>;
using CommunicationBandwidthColumns =
    ColumnList<OperationColumns, Text<"transport">, Number<"size_mb">, Number<"transit_s">,
               Number<"bandwidth_gbps">, Number<"large_packet_ratio">, Number<"packet_mb">,
               Integer<"packets">, Number<"packets_s">>;
using CommunicationMatrixColumns =
    ColumnList<OperationColumns, Integer<"source">, Integer<"target">, Text<"transport">, Number<"size_mb">,
               Number<"transit_s">, Number<"bandwidth_gbps">, Text<"slowest">>;

/// The values of `OperationColumns`.
inline auto operation_of(std::int64_t rank, const trace::ascend::CommunicationName& name) {
  return std::tuple(rank, std::string_view(name.step),
                    std::string_view(name.point_to_point ? "p2p" : "collective"),
                    std::string_view(name.operation), std::string_view(name.group));
}

/// One of these tables. Nothing if no profile has it.
std::optional<Table> communication_table(std::span<const trace::ascend::ProfileFolder> profiles,
                                         const std::string& name);

}  // namespace headrace::analysis::device
