// rocpd: the SQLite databases that rocprofv3 writes.
#pragma once

#include <vector>

#include "trace/format.h"

namespace headrace::trace::rocm {

/// Its tables are called rocpd_SOMETHING_UUID, one set for each process; older ones have no uuid.
bool is_rocpd(const Input& input);

/// One trace for each process with work on a GPU. Regions of HIP, HSA and RCCL become calls, those of roctx
/// annotations; a dispatch and the call that made it have one `stack_id`. Times are of the machine's clock
/// since its start, so there is no `base_time_ns`. Counters and allocations are not read, which a remark
/// says. Throws FormatError.
std::vector<TraceFile> read_rocpd(Input& input, const ReadOptions& options);

}  // namespace headrace::trace::rocm
