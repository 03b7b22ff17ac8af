#include "headrace/analysis/device/sequences.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/device/call_groups.h"
#include "analysis/device/callers.h"
#include "analysis/device/names_that.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;

std::string sequence_text(const trace::Columns& columns, const CallGroup& group, std::string_view between) {
  return joined(group.sequence, between, [&](trace::Names::Id name) { return columns.names[name]; });
}

}  // namespace

Table sequences(std::span<const trace::Trace> traces, const SequencesOptions& options) {
  Rows<SequencesColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    const std::vector<bool> wanted = names_that(columns, [&](std::string_view name) {
      return name.find(options.operator_name) != std::string_view::npos;
    });
    Callers callers(trace, [&](Row row) { return wanted[columns.name[row]]; });
    std::vector<std::pair<Row, Work>> owned;
    for (const Work& each : all.work) {
      const Row launch = trace.correlation.launch_of(each.row);
      const Row call = launch == trace::kNoRow ? trace::kNoRow : callers.outermost(launch);
      if (call != trace::kNoRow) owned.emplace_back(call, each);
    }
    std::vector<CallWithWork> calls = by_call(std::move(owned));
    std::erase_if(calls, [&](const CallWithWork& call) { return call.work.size() < options.shortest; });
    if (calls.empty())
      rows.note(trace.rank, " has no call of '" + options.operator_name + "' that started " +
                                std::to_string(options.shortest) + " pieces of device work or more");
    std::size_t shown = 0;
    for (const CallGroup& each : group(columns, calls)) {
      if (options.most != 0 && shown++ == options.most) break;
      std::int64_t kernel_ns = 0;
      std::int64_t host_ns = 0;
      for (const std::size_t call : each.calls) {
        for (const Work& work : calls[call].work) kernel_ns += work.end_ns - work.start_ns;
        host_ns += columns.duration_ns[calls[call].call];
      }
      rows.add(trace.rank, std::string(columns.names[each.name]) + "|" + sequence_text(columns, each, "|"),
               each.sequence.size(), each.calls.size(), seconds(kernel_ns), seconds(host_ns));
    }
  }
  return rows.take();
}

Table operator_sequences(std::span<const trace::Trace> traces, const OperatorSequencesOptions& options) {
  Rows<OperatorSequencesColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    const std::vector<bool> wanted =
        names_that(columns, [&](std::string_view name) { return name.starts_with(options.prefix); });
    Callers callers(trace, [&](Row row) { return wanted[columns.name[row]]; });
    std::vector<std::pair<Row, Work>> owned;
    for (const Work& each : all.work) {
      const Row launch = trace.correlation.launch_of(each.row);
      const Row call = launch == trace::kNoRow ? trace::kNoRow : callers.innermost(launch);
      if (call != trace::kNoRow) owned.emplace_back(call, each);
    }
    if (owned.empty() && !all.work.empty())
      rows.note(trace.rank,
                ": no work was launched within an operator whose name begins with '" + options.prefix + "'");
    const auto launched_ns = [&](const Work& work) {
      return columns.start_ns[trace.correlation.launch_of(work.row)];
    };
    std::stable_sort(owned.begin(), owned.end(), [&](const auto& a, const auto& b) {
      return launched_ns(a.second) < launched_ns(b.second);
    });
    const std::vector<CallWithWork> calls = by_call(std::move(owned));
    for (const CallGroup& each : group(columns, calls)) {
      std::int64_t operator_ns = 0;
      std::int64_t launch_ns = 0;
      for (const std::size_t call : each.calls) {
        const Work& first = calls[call].work.front();
        operator_ns += launched_ns(first) - columns.start_ns[calls[call].call];
        launch_ns += first.start_ns - launched_ns(first);
      }
      const auto count = static_cast<double>(each.calls.size());
      rows.add(trace.rank, columns.names[each.name], sequence_text(columns, each, " -> "), each.calls.size(),
               seconds(operator_ns) / count, seconds(launch_ns) / count);
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
