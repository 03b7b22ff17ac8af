#include "trace/ascend/task_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "headrace/trace/ascend/categories.h"

namespace headrace::trace::ascend {
namespace {

/// Without the prefix and the ending that say how a task was queued ("KERNEL_", "_SQE").
constexpr std::array<std::string_view, 12> kCores = {"AI_CORE", "AICORE", "AIC",     "AI_VECTOR_CORE",
                                                     "AIVEC",   "AIV",    "MIX_AIC", "MIX_AIV",
                                                     "AI_CPU",  "AICPU",  "DSA",     "STARS_COMMON"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDirections = {{
    {"host to device", "Memcpy HtoD"},
    {"device to host", "Memcpy DtoH"},
    {"device to device", "Memcpy DtoD"},
    {"host to host", "Memcpy HtoH"},
}};

std::string_view core_of(std::string_view type) noexcept {
  if (type.starts_with("KERNEL_")) type.remove_prefix(7);
  if (type.ends_with("_SQE")) type.remove_suffix(4);
  return type;
}

}  // namespace

std::string_view category_of_task(std::string_view type, std::string_view name) noexcept {
  if (std::find(kCores.begin(), kCores.end(), core_of(type)) != kCores.end()) return kComputation;
  if (type.starts_with("MEMCPY") || name.starts_with("MEMCPY")) return kCopy;
  if (type.starts_with("MEMSET") || name.starts_with("MEMSET")) return kFill;
  if (type.starts_with("EVENT_WAIT") || type.starts_with("NOTIFY_WAIT")) return kSynchronisation;
  return kTask;
}

std::string_view name_of_copy(std::string_view direction) noexcept {
  for (const auto& [begin, name] : kDirections) {
    if (direction.starts_with(begin)) return name;
  }
  return {};
}

}  // namespace headrace::trace::ascend
