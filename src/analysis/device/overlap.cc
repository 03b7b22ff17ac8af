#include "headrace/analysis/device/overlap.h"

#include <cstdint>
#include <string>
#include <utility>

#include "analysis/device/rank_rows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  Table table;
  RankRows rows(options.per_device);
  Numbers communication_s, computation_s, overlap_s, overlap_pct;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    take_notes(table, all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) {
      const Intervals communication = busy(each.work, KernelKind::communication);
      const Intervals computation = busy(each.work, KernelKind::computation);
      const std::int64_t both_ns = total_ns(intersected(communication, computation));
      rows.add(trace.rank, each.of.device);
      communication_s.push_back(seconds(total_ns(communication)));
      computation_s.push_back(seconds(total_ns(computation)));
      overlap_s.push_back(seconds(both_ns));
      overlap_pct.push_back(percent(both_ns, total_ns(communication)));
      if (communication.empty())
        table.notes.push_back("rank " + std::to_string(trace.rank) + " has no communication");
    }
  }
  rows.put_into(table);
  table.add("communication_s", std::move(communication_s))
      .add("computation_s", std::move(computation_s))
      .add("overlap_s", std::move(overlap_s))
      .add("overlap_pct", std::move(overlap_pct));
  return table;
}

}  // namespace headrace::analysis::device
