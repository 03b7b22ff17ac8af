// Kind of an event, by its category.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/trace/columns.h"

namespace headrace::trace {

enum class EventKind : std::uint8_t {
  other,              ///< not complete (a flow, a counter, a mark), or of a category that nothing here needs
  operation,          ///< an operator of the framework, on the host
  annotation,         ///< a range that the user or the profiler named, on the host
  python,             ///< a Python function
  runtime,            ///< a call of the device's runtime or driver: launches, copies, waits
  kernel,             ///< on the device
  memory_copy,        ///< on the device
  memory_set,         ///< on the device
  synchronisation,    ///< a wait, on the device's row
  device_annotation,  ///< an annotation as the device saw it
  computation,        ///< a kernel that the profiler itself says computes, whatever its name
  collective,         ///< a whole operation of a communication library, on the device
  device_task,        ///< on the device's rows, but occupies none of it: a part of a collective, a mark
  summary,            ///< the profiler's own sums over the device's rows, which they repeat
};

/// Categories of Kineto, today's and those of before 2022, and those that readers of other formats give
/// (`ascend/categories.h`); every `..._runtime` and `..._driver` is a runtime.
EventKind kind_of_category(std::string_view category) noexcept;

/// Work that keeps a stream of the device busy.
constexpr bool is_device_work(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::kernel:
    case EventKind::memory_copy:
    case EventKind::memory_set:
    case EventKind::computation:
    case EventKind::collective:
      return true;
    default:
      return false;
  }
}

/// Device work that is neither a copy nor a fill.
constexpr bool is_kernel(EventKind kind) noexcept {
  return kind == EventKind::kernel || kind == EventKind::computation || kind == EventKind::collective;
}

/// Something on a row of the device.
constexpr bool is_on_device(EventKind kind) noexcept { return kind >= EventKind::kernel; }

/// A call of the runtime that waits until the device is done, by its name.
constexpr bool waits_for_device(std::string_view call) noexcept {
  return call.find("ynchronize") != std::string_view::npos;
}

/// One entry per row; only complete events (phase X) are anything but `other`.
std::vector<EventKind> kinds_of(const Columns& columns);

}  // namespace headrace::trace
