#include "headrace/analysis/device/kernels.h"

#include <cstdint>
#include <vector>

#include "analysis/device/named_calls.h"

namespace headrace::analysis::device {

Table kernels(std::span<const trace::Trace> traces, const KernelsOptions& options) {
  Rows<KernelsColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    CallsByName by_name(columns.names);
    for (const Work& each : all.work) {
      if (options.memory || each.kind != KernelKind::memory)
        by_name.add(columns.name[each.row], each.kind, each.end_ns - each.start_ns);
    }
    const std::vector<NamedCalls> calls = by_name.take();
    const std::int64_t whole_ns = total_ns(calls);
    for (const NamedCalls& each : folded(calls, {options.most_names, options.time_share}))
      rows.add(trace.rank, each.name, to_string(each.kind), call_figures(each.calls, whole_ns));
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
