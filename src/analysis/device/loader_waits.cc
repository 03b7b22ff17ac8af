#include "headrace/analysis/device/loader_waits.h"

#include <utility>
#include <vector>

#include "analysis/device/names_that.h"

namespace headrace::analysis::device {

bool is_loader_wait(std::string_view name) noexcept {
  return name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)");
}

Intervals loader_waits(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  const std::vector<bool> waits =
      names_that(columns, [](std::string_view name) { return is_loader_wait(name); });
  std::vector<Interval> found;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const bool on_host = columns.phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
    if (on_host && waits[columns.name[row]]) found.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  return merged(std::move(found));
}

}  // namespace headrace::analysis::device
