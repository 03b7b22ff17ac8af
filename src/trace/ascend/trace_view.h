// Rows and tasks of an Ascend profile, and its `trace_view.json`, whose events get what those of other traces
// have.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "headrace/trace/ascend/categories.h"
#include "headrace/trace/columns.h"

namespace headrace::trace::ascend {

/// Without the prefix and the ending that say how a task was queued ("KERNEL_", "_SQE").
inline constexpr std::array<std::string_view, 12> kCores = {"AI_CORE", "AICORE", "AIC",     "AI_VECTOR_CORE",
                                                            "AIVEC",   "AIV",    "MIX_AIC", "MIX_AIV",
                                                            "AI_CPU",  "AICPU",  "DSA",     "STARS_COMMON"};
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDirections = {{
    {"host to device", "Memcpy HtoD"},
    {"device to host", "Memcpy DtoH"},
    {"device to device", "Memcpy DtoD"},
    {"host to host", "Memcpy HtoH"},
}};

inline std::string_view core_of(std::string_view type) noexcept {
  if (type.starts_with("KERNEL_")) type.remove_prefix(7);
  if (type.ends_with("_SQE")) type.remove_suffix(4);
  return type;
}

/// The category (`categories.h`) of a task on the device's own rows. `type`: "AI_CORE", "MIX_AIV",
/// "KERNEL_AIVEC", "EVENT_WAIT_SQE", ...; a kernel is known by its type, copies and fills by type or name.
/// Types that are not known here are kTask, which counts as no work.
inline std::string_view category_of_task(std::string_view type, std::string_view name) noexcept {
  if (std::find(kCores.begin(), kCores.end(), core_of(type)) != kCores.end()) return kComputation;
  if (type.starts_with("MEMCPY") || name.starts_with("MEMCPY")) return kCopy;
  if (type.starts_with("MEMSET") || name.starts_with("MEMSET")) return kFill;
  if (type.starts_with("EVENT_WAIT") || type.starts_with("NOTIFY_WAIT")) return kSynchronisation;
  return kTask;
}

/// "Memcpy HtoD" for "host to device", also "HtoH", "DtoH" and "DtoD"; empty for anything else.
inline std::string_view name_of_copy(std::string_view direction) noexcept {
  for (const auto& [begin, name] : kDirections) {
    if (direction.starts_with(begin)) return name;
  }
  return {};
}

/// A process id that msprof makes up: the real process, the place of the row in the view, the device.
constexpr std::int64_t made_up_pid(std::int64_t pid, std::int64_t place, std::int64_t device) noexcept {
  return (pid & ((std::int64_t{1} << 40) - 1)) << 10 | place << 5 | (device & 31);
}

/// Nothing happens to columns of other profilers (no row of them is called "Ascend Hardware" or "CANN").
///
/// - Events without a category get one (categories.h): by their row, and on the device by the type of task.
/// - Calls of CANN move to the row of the framework's thread that made them: the file shows one thread as
/// two.
/// - Work on the device gets its device's number and, for collectives, the stream that they ran on.
/// - Copies are named by their direction ("Memcpy HtoD").
void adopt_trace_view(Columns& columns);

}  // namespace headrace::trace::ascend
