#include "headrace/analysis/device/launches.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/rank_rows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct Launch {
  trace::Row row = 0;
  /// The first that it started.
  trace::Row device_row = 0;
  std::uint32_t works = 0;
  bool only_memory = true;
  std::int64_t device_ns = 0;
};

/// By start. `work` is in the order of time, so the first piece of each launch is its first.
std::vector<Launch> launches_of(const trace::Trace& trace, std::span<const Work> work) {
  const trace::Columns& columns = trace.columns();
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> place(columns.size(), kNone);
  std::vector<Launch> launches;
  launches.reserve(work.size());
  for (const Work& each : work) {
    const trace::Row row = trace.correlation.launch_of(each.row);
    if (row == trace::kNoRow) continue;
    if (place[row] == kNone) {
      place[row] = static_cast<std::uint32_t>(launches.size());
      launches.push_back({row, each.row, 0, true, 0});
    }
    Launch& launch = launches[place[row]];
    ++launch.works;
    launch.device_ns += each.end_ns - each.start_ns;
    if (each.kind != KernelKind::memory) launch.only_memory = false;
  }
  const auto earlier = [&](const Launch& a, const Launch& b) {
    return std::tuple(columns.start_ns[a.row], a.row) < std::tuple(columns.start_ns[b.row], b.row);
  };
  if (!std::is_sorted(launches.begin(), launches.end(), earlier))
    std::sort(launches.begin(), launches.end(), earlier);
  return launches;
}

}  // namespace

Table launches(std::span<const trace::Trace> traces, const LaunchesOptions& options) {
  Table table;
  Integers ranks, correlations, rows, device_rows, works, start_ns;
  Texts names;
  Numbers host_s, device_s, delay_s;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    DeviceWork all = device_work(trace, options.scope);
    take_notes(table, all.notes);
    const std::vector<Launch> launches = launches_of(trace, all.work);
    const bool worked = !std::exchange(all.work, {}).empty();
    if (launches.empty() && worked)
      table.notes.push_back("rank " + std::to_string(trace.rank) +
                            ": the file has no call that started its work on the device");
    if (ranks.empty()) {  // not before: what was freed until now is used again
      const std::size_t most = most_works(traces);
      for (Integers* column : {&ranks, &correlations, &rows, &device_rows, &works, &start_ns})
        column->reserve(most);
      for (Numbers* column : {&host_s, &device_s, &delay_s}) column->reserve(most);
      names.reserve(most);
    }
    for (const Launch& launch : launches) {
      if (launch.only_memory && !options.memory) continue;
      ranks.push_back(trace.rank);
      correlations.push_back(columns.correlation[launch.row]);
      names.push_back(columns.name_of(launch.row));
      rows.push_back(launch.row);
      device_rows.push_back(launch.device_row);
      works.push_back(launch.works);
      start_ns.push_back(columns.start_ns[launch.row]);
      host_s.push_back(seconds(columns.duration_ns[launch.row]));
      device_s.push_back(seconds(launch.device_ns));
      const std::int64_t delay_ns = columns.start_ns[launch.device_row] - columns.end_ns(launch.row);
      delay_s.push_back(seconds(std::max<std::int64_t>(0, delay_ns)));
    }
  }
  table.add("rank", std::move(ranks))
      .add("correlation", std::move(correlations))
      .add("name", std::move(names))
      .add("row", std::move(rows))
      .add("device_row", std::move(device_rows))
      .add("works", std::move(works))
      .add("start_ns", std::move(start_ns))
      .add("host_s", std::move(host_s))
      .add("device_s", std::move(device_s))
      .add("delay_s", std::move(delay_s));
  return table;
}

}  // namespace headrace::analysis::device
