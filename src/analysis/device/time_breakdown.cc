#include "headrace/analysis/device/time_breakdown.h"

#include <cstdint>
#include <utility>

#include "analysis/device/rank_rows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  Table table;
  RankRows rows(options.per_device);
  Numbers idle_s, compute_s, non_compute_s, span_s, idle_pct, compute_pct, non_compute_pct;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    take_notes(table, all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) {
      const std::int64_t span = span_ns(each.work);
      const std::int64_t busy_ns = total_ns(busy(each.work));
      const std::int64_t compute_ns = total_ns(busy(each.work, KernelKind::computation));
      rows.add(trace.rank, each.of.device);
      idle_s.push_back(seconds(span - busy_ns));
      compute_s.push_back(seconds(compute_ns));
      non_compute_s.push_back(seconds(busy_ns - compute_ns));
      span_s.push_back(seconds(span));
      idle_pct.push_back(percent(span - busy_ns, span));
      compute_pct.push_back(percent(compute_ns, span));
      non_compute_pct.push_back(percent(busy_ns - compute_ns, span));
    }
  }
  rows.put_into(table);
  table.add("idle_s", std::move(idle_s))
      .add("compute_s", std::move(compute_s))
      .add("non_compute_s", std::move(non_compute_s))
      .add("kernel_span_s", std::move(span_s))
      .add("idle_pct", std::move(idle_pct))
      .add("compute_pct", std::move(compute_pct))
      .add("non_compute_pct", std::move(non_compute_pct));
  return table;
}

}  // namespace headrace::analysis::device
