// kernel_details of a profile that has only a database.
#pragma once

#include <optional>
#include <span>

#include "headrace/analysis/rows.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::device {

using KernelDetailsColumns =
    ColumnList<Integer<"rank">, Integer<"task_id">, Integer<"stream_id">, Text<"name">, Text<"type">,
               Text<"accelerator_core">, Integer<"start_time_ns">, Number<"duration_s">,
               Number<"wait_time_s">, Number<"block_dim">, Number<"mix_block_dim">, Text<"input_shapes">,
               Text<"input_data_types">, Text<"input_formats">, Text<"output_shapes">,
               Text<"output_data_types">, Text<"output_formats">>;

bool has_database_kernels(const trace::ascend::ProfileFolder& profile);

/// TASK, COMPUTE_TASK_INFO and COMMUNICATION_OP (accelerator_core "HCCL"), with the names that the CSV file's
/// columns get; nothing if no profile has them. Steps and the counters of the cores are not in these tables,
/// so their columns are missing.
std::optional<Table> database_kernels(std::span<const trace::ascend::ProfileFolder> profiles);

}  // namespace headrace::analysis::device
