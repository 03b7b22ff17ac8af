// Tables of a profile's database under the names, columns and units that the CSV files of a text profile have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/rows.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "trace/database.h"

namespace headrace::analysis::device {

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

/// Of one database; a table without columns for a name that is none.
Table database_table(trace::Database& database, std::int64_t rank, const std::string& name);
/// One rank after the other. Empty where no profile's database has it.
std::optional<Table> database_table(std::span<const trace::ascend::ProfileFolder> profiles,
                                    const std::string& name);

}  // namespace headrace::analysis::device
