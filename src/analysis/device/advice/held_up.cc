#include "analysis/device/advice/held_up.h"

#include <utility>
#include <vector>

#include "analysis/device/names_that.h"
#include "headrace/analysis/device/loader_waits.h"

namespace headrace::analysis::device {

bool is_memory_call(std::string_view name) noexcept {
  if (!name.starts_with("cuda") && !name.starts_with("hip") && !name.starts_with("cu")) return false;
  if (name.find("Async") != std::string_view::npos) return false;
  return name.find("Malloc") != std::string_view::npos || name.find("Free") != std::string_view::npos ||
         name.find("HostAlloc") != std::string_view::npos;
}

Intervals held_up(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> of_memory = names_that(columns, is_memory_call);
  std::vector<Interval> calls;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == trace::EventKind::runtime && of_memory[columns.name[row]])
      calls.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  return united(loader_waits(trace), merged(std::move(calls)));
}

}  // namespace headrace::analysis::device
