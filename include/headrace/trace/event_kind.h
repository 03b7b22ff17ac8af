// What an event is, as its category says.
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
};

/// Categories of Kineto, today's and those of before 2022; every `..._runtime` and `..._driver` is a runtime.
EventKind kind_of_category(std::string_view category) noexcept;

/// Work that keeps a stream of the device busy.
constexpr bool is_device_work(EventKind kind) noexcept {
  return kind == EventKind::kernel || kind == EventKind::memory_copy || kind == EventKind::memory_set;
}

/// Something on a row of the device.
constexpr bool is_on_device(EventKind kind) noexcept { return kind >= EventKind::kernel; }

/// One entry per row; only complete events (phase X) are anything but `other`.
std::vector<EventKind> kinds_of(const Columns& columns);

}  // namespace headrace::trace
