#include "headrace/analysis/device/time_breakdown.h"

#include <cstdint>
#include <utility>

#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  Rows<TimeBreakdownColumns> rows;
  rows.show<"device">(options.per_device);
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) {
      const std::int64_t span = span_ns(each.work);
      const std::int64_t busy_ns = total_ns(busy(each.work));
      const std::int64_t compute_ns = total_ns(busy(each.work, KernelKind::computation));
      rows.add(trace.rank, each.of.device, seconds(span - busy_ns), seconds(compute_ns),
               seconds(busy_ns - compute_ns), seconds(span), percent(span - busy_ns, span),
               percent(compute_ns, span), percent(busy_ns - compute_ns, span));
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
