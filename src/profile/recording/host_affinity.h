// The CPUs that a thread may run on.
#pragma once

#include "headrace/profile/host/kernel_text.h"

namespace headrace::profile {

/// Affinity of a thread of any process (for a process: of its first thread); empty where it cannot be read.
CpuSet allowed_cpus(int tid) noexcept;

}  // namespace headrace::profile
