// kernel_details of a profile that has only a database.
#pragma once

#include <optional>
#include <span>

#include "headrace/analysis/table.h"
#include "headrace/trace/ascend/profile_folder.h"

namespace headrace::analysis::device {

bool has_database_kernels(const trace::ascend::ProfileFolder& profile);

/// TASK, COMPUTE_TASK_INFO and COMMUNICATION_OP (accelerator_core "HCCL"), with the names that the CSV file's
/// columns get; nothing if no profile has them. Steps and the counters of the cores are not in these tables,
/// so their columns are missing.
std::optional<Table> database_kernels(std::span<const trace::ascend::ProfileFolder> profiles);

}  // namespace headrace::analysis::device
