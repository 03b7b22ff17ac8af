#include "headrace/analysis/device/kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/call_statistics.h"
#include "analysis/device/folding.h"
#include "analysis/device/rank_rows.h"

namespace headrace::analysis::device {
namespace {

struct NamedCalls {
  trace::Names::Id name = 0;
  KernelKind kind = KernelKind::other;
  CallStatistics calls;
};

/// By kind, the longest in total first.
std::vector<NamedCalls> calls_by_name(const trace::Columns& columns, std::span<const Work> work) {
  // A name may be that of a copy and of a kernel.
  std::vector<std::array<std::int32_t, kKernelKinds>> place(columns.names.size(), {-1, -1, -1, -1});
  std::vector<NamedCalls> result;
  for (const Work& each : work) {
    std::int32_t& at = place[columns.name[each.row]][static_cast<std::size_t>(each.kind)];
    if (at < 0) {
      at = static_cast<std::int32_t>(result.size());
      result.push_back({columns.name[each.row], each.kind, {}});
    }
    result[static_cast<std::size_t>(at)].calls.add(each.end_ns - each.start_ns);
  }
  std::sort(result.begin(), result.end(), [&](const NamedCalls& a, const NamedCalls& b) {
    return std::tuple(a.kind, -a.calls.total_ns(), columns.names[a.name]) <
           std::tuple(b.kind, -b.calls.total_ns(), columns.names[b.name]);
  });
  return result;
}

}  // namespace

Table kernels(std::span<const trace::Trace> traces, const KernelsOptions& options) {
  Table table;
  RankRows rows(false);
  Texts names, kinds;
  CallColumns figures;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    DeviceWork all = device_work(trace, options.scope);
    take_notes(table, all.notes);
    if (!options.memory)
      std::erase_if(all.work, [](const Work& each) { return each.kind == KernelKind::memory; });
    const std::vector<NamedCalls> by_name = calls_by_name(columns, all.work);

    std::int64_t whole_ns = 0;
    for (const NamedCalls& named : by_name) whole_ns += named.calls.total_ns();
    const auto add = [&](std::string_view name, KernelKind kind, const CallStatistics& calls) {
      rows.add(trace.rank, trace::kAbsent);
      names.push_back(name);
      kinds.push_back(to_string(kind));
      figures.add(calls, whole_ns);
    };
    for (auto first = by_name.begin(); first != by_name.end();) {
      const auto last = std::find_if(first, by_name.end(),
                                     [&](const NamedCalls& named) { return named.kind != first->kind; });
      std::vector<std::int64_t> totals_ns;
      for (auto named = first; named != last; ++named) totals_ns.push_back(named->calls.total_ns());
      const auto shown =
          static_cast<std::ptrdiff_t>(shown_names(totals_ns, options.most_names, options.time_share));
      for (auto named = first; named != first + shown; ++named)
        add(columns.names[named->name], named->kind, named->calls);
      CallStatistics others;
      for (auto named = first + shown; named != last; ++named) others.add(named->calls);
      if (others.calls() > 0) add("others", first->kind, others);
      first = last;
    }
  }
  rows.put_into(table);
  table.add("name", std::move(names)).add("kind", std::move(kinds));
  figures.put_into(table);
  return table;
}

}  // namespace headrace::analysis::device
