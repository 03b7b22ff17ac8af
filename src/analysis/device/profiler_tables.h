// Tables of a profile beside its CSV files, under their names, columns and units: from databases, and about communication.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "trace/database.h"

namespace headrace::analysis::device {

/// The profile's tables among `communication`, `communication_bandwidth` and `communication_matrix`.
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
inline auto operation_of(const trace::ascend::CommunicationName& name) {
  return std::tuple(name.rank, std::string_view(name.step),
                    std::string_view(name.point_to_point ? "p2p" : "collective"),
                    std::string_view(name.operation), std::string_view(name.group));
}

/// One of these tables. Nothing if no profile has it.
std::optional<Table> communication_table(std::span<const trace::ascend::ProfileFolder> profiles,
                                         const std::string& name);

using ApiStatisticColumns = ColumnList<Integer<"rank">, Text<"level">, Text<"api_name">, Number<"time_s">,
                                       Integer<"count">, Number<"avg_s">, Number<"min_s">, Number<"max_s">,
                                       Number<"variance", "In square microseconds, as in the CSV file.">>;
using KernelDetailsColumns =
    ColumnList<Integer<"rank">, Integer<"task_id">, Integer<"stream_id">, Text<"name">, Text<"type">,
               Text<"accelerator_core">, Integer<"start_time_ns">, Number<"duration_s">,
               Number<"wait_time_s">, Number<"block_dim">, Number<"mix_block_dim">, Text<"input_shapes">,
               Text<"input_data_types">, Text<"input_formats">, Text<"output_shapes">,
               Text<"output_data_types">, Text<"output_formats">>;
using CountersColumns = ColumnList<Integer<"rank">, Text<"process">, Text<"counter">, Integer<"timestamp_ns">,
                                   Number<"value">, Text<"unit">>;

/// api_statistic, counters, kernel_details, memory_record, npu_module_mem, operator_memory, step_trace_time: those
/// whose rows the databases of the profile have. Nothing for a database that cannot be read.
std::vector<std::string> database_tables(const trace::ascend::ProfileFolder& profile);

std::vector<std::string> database_tables(const trace::Database& database);

/// The steps of ranks and stages in the database of a cluster's analysis.
inline constexpr const char* kClusterSteps = "cluster_step_trace_time";

/// Table of a database; without columns if the name is unknown.
Table database_table(trace::Database& database, std::int64_t rank, const std::string& name);
/// One rank after the other. Empty where no profile's database has it.
std::optional<Table> database_table(std::span<const trace::ascend::ProfileFolder> profiles,
                                    const std::string& name);

}  // namespace headrace::analysis::device
