#include "headrace/analysis/device/loader_waits.h"

#include <utility>
#include <vector>

namespace headrace::analysis::device {

bool is_loader_wait(std::string_view name) noexcept {
  return name.starts_with("enumerate(DataLoader)") || name.starts_with("enumerate(DataPipe)");
}

Intervals loader_waits(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  std::vector<bool> waits(columns.names.size());
  for (trace::Names::Id id = 0; id < columns.names.size(); ++id)
    waits[id] = is_loader_wait(columns.names[id]);
  std::vector<Interval> found;
  for (trace::Row row = 0; row < columns.size(); ++row) {
    const bool on_host = columns.phase[row] == 'X' && !trace::is_on_device(trace.kinds[row]);
    if (on_host && waits[columns.name[row]]) found.push_back({columns.start_ns[row], columns.end_ns(row)});
  }
  return merged(std::move(found));
}

}  // namespace headrace::analysis::device
