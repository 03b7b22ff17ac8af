// What a piece of work on a device is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/trace/event_kind.h"

namespace headrace::analysis::device {

enum class KernelKind : std::uint8_t { computation, communication, memory, other };
inline constexpr std::size_t kKernelKinds = 4;

const char* to_string(KernelKind kind) noexcept;

/// By the kernel's name alone.
///
/// communication: kernels of NCCL and RCCL under every name they had (`ncclKernel_...`, `ncclDevKernel_...`),
/// HCCL, oneCCL, MSCCL, NVSHMEM and vLLM's `cross_device_reduce`. memory: copies and fills (`Memcpy`,
/// `Memset`, `hipMemcpy`, ROCm's blit kernels, `dma`). other: waits and what a device's own runtime ran. All
/// else computes.
KernelKind kind_of_kernel(std::string_view name) noexcept;

/// What the profiler itself says comes first: an event of a copy's or a fill's category is memory, whatever
/// its name; so for `computation` and `collective`.
KernelKind kind_of_work(trace::EventKind kind, std::string_view name) noexcept;

}  // namespace headrace::analysis::device
