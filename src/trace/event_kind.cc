#include "headrace/trace/event_kind.h"

#include <array>
#include <utility>

#include "headrace/trace/ascend/categories.h"

namespace headrace::trace {
namespace {

constexpr std::array<std::pair<std::string_view, EventKind>, 20> kCategories = {{
    {"cpu_op", EventKind::operation},
    {"Operator", EventKind::operation},
    {"user_annotation", EventKind::annotation},
    {"python_function", EventKind::python},
    {"Runtime", EventKind::runtime},
    {"kernel", EventKind::kernel},
    {"Kernel", EventKind::kernel},
    {"mtia_ccp_events", EventKind::kernel},
    {"gpu_memcpy", EventKind::memory_copy},
    {"Memcpy", EventKind::memory_copy},
    {"gpu_memset", EventKind::memory_set},
    {"Memset", EventKind::memory_set},
    {"cuda_sync", EventKind::synchronisation},
    {"xpu_sync", EventKind::synchronisation},
    {"gpu_user_annotation", EventKind::device_annotation},
    {ascend::kComputation, EventKind::computation},
    {ascend::kCollective, EventKind::collective},
    {ascend::kSynchronisation, EventKind::synchronisation},
    {ascend::kTask, EventKind::device_task},
    {ascend::kOverlap, EventKind::summary},
}};

/// Kind of an event without a category, as rocprof's first version and rpd2tracing write it: "GPU0" and "6 GPU0" are
/// devices, "COPY" is what they copy.
EventKind kind_in_process(std::string_view process, std::string_view name) noexcept {
  const std::size_t gpu = process.rfind("GPU");
  const bool is_device = gpu != std::string_view::npos && gpu + 3 < process.size() &&
                         process.find_first_not_of("0123456789", gpu + 3) == std::string_view::npos;
  if (process.ends_with("COPY") || (is_device && name.starts_with("Copy"))) return EventKind::memory_copy;
  if (is_device) return EventKind::kernel;
  return name.starts_with("hip") || name.starts_with("hsa_") ? EventKind::runtime : EventKind::other;
}

}  // namespace

EventKind kind_of_category(std::string_view category) noexcept {
  for (const auto& [name, kind] : kCategories) {
    if (name == category) return kind;
  }
  if (category.ends_with("_runtime") || category.ends_with("_driver")) return EventKind::runtime;
  return EventKind::other;
}

std::vector<EventKind> kinds_of(const Columns& columns) {
  // By name number: a trace has a dozen categories and a million events.
  std::vector<EventKind> by_name(columns.names.size(), EventKind::other);
  std::vector<bool> known(columns.names.size(), false);
  std::vector<EventKind> kinds(columns.size(), EventKind::other);
  for (Row row = 0; row < columns.size(); ++row) {
    const Names::Id category = columns.category[row];
    if (!known[category]) by_name[category] = kind_of_category(columns.names[category]);
    known[category] = true;
    if (columns.phase[row] != 'X') continue;
    kinds[row] = by_name[category];
    if (columns.names[category].empty())
      kinds[row] = kind_in_process(columns.lanes[columns.lane[row]].process_name, columns.name_of(row));
  }
  return kinds;
}

}  // namespace headrace::trace
