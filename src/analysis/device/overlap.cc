#include "headrace/analysis/device/overlap.h"

#include <cstdint>
#include <utility>

#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  Rows<OverlapColumns> rows;
  rows.show<"device">(options.per_device);
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) {
      const Intervals communication = busy(each.work, KernelKind::communication);
      const Intervals computation = busy(each.work, KernelKind::computation);
      const std::int64_t both_ns = total_ns(intersected(communication, computation));
      rows.add(trace.rank, each.of.device, seconds(total_ns(communication)), seconds(total_ns(computation)),
               seconds(both_ns), percent(both_ns, total_ns(communication)));
      if (communication.empty()) rows.note(trace.rank, " has no communication");
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
