// The categories that readers of Ascend profiles give to events, where the file names none.
#pragma once

#include <string_view>

namespace headrace::trace::ascend {

/// A task of a core or of the device's own CPU: what the profiler's "Computing" is made of.
inline constexpr std::string_view kComputation = "computation";
/// A whole operation of HCCL (`hcom_allReduce__...`), on the row of its group.
inline constexpr std::string_view kCollective = "collective";
/// A wait on a stream of the device.
inline constexpr std::string_view kSynchronisation = "device_sync";
/// Tasks without a core: the parts of a collective, records of events, marks. In no table of device work.
inline constexpr std::string_view kTask = "device_task";
/// The profiler's own sums ("Overlap Analysis"). They repeat other rows.
inline constexpr std::string_view kOverlap = "overlap";
/// A call of CANN on the host.
inline constexpr std::string_view kCall = "cann_runtime";
inline constexpr std::string_view kCopy = "gpu_memcpy";
inline constexpr std::string_view kFill = "gpu_memset";
inline constexpr std::string_view kOperator = "cpu_op";
inline constexpr std::string_view kAnnotation = "user_annotation";
/// Python's garbage collector.
inline constexpr std::string_view kCollection = "gc";
/// The two ends of PyTorch's task queue: one thread puts an operator in, another launches it.
inline constexpr std::string_view kEnqueue = "enqueue";
inline constexpr std::string_view kDequeue = "dequeue";

}  // namespace headrace::trace::ascend
