#include "headrace/analysis/device/launches.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/rank_rows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct Launch {
  std::int64_t start_ns = 0;
  trace::Row row = 0;
  trace::Row device_row = 0;
  std::int64_t works = 0;
  std::int64_t device_start_ns = 0;
  std::int64_t device_ns = 0;
  bool only_memory = true;
};

/// By start. `work` is in the order of time, so the first piece of each launch is its first.
std::vector<Launch> launches_of(const trace::Trace& trace, std::span<const Work> work) {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> place(trace.columns().size(), kNone);
  std::vector<Launch> launches;
  launches.reserve(work.size());
  for (const Work& each : work) {
    const trace::Row row = trace.correlation.launch_of(each.row);
    if (row == trace::kNoRow) continue;
    if (place[row] == kNone) {
      place[row] = static_cast<std::uint32_t>(launches.size());
      launches.push_back({trace.columns().start_ns[row], row, each.row, 0, each.start_ns, 0, true});
    }
    Launch& launch = launches[place[row]];
    ++launch.works;
    launch.device_ns += each.end_ns - each.start_ns;
    if (each.kind != KernelKind::memory) launch.only_memory = false;
  }
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return std::tie(a.start_ns, a.row) < std::tie(b.start_ns, b.row);
  });
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
    const DeviceWork all = device_work(trace, options.scope);
    take_notes(table, all.notes);
    const std::vector<Launch> launches = launches_of(trace, all.work);
    if (launches.empty() && !all.work.empty())
      table.notes.push_back("rank " + std::to_string(trace.rank) +
                            ": the file has no call that started its work on the device");
    for (Integers* column : {&ranks, &correlations, &rows, &device_rows, &works, &start_ns})
      column->reserve(column->size() + launches.size());
    for (Numbers* column : {&host_s, &device_s, &delay_s}) column->reserve(column->size() + launches.size());
    names.reserve(names.size() + launches.size());
    for (const Launch& launch : launches) {
      if (launch.only_memory && !options.memory) continue;
      ranks.push_back(trace.rank);
      correlations.push_back(columns.correlation[launch.row]);
      names.push_back(columns.name_of(launch.row));
      rows.push_back(launch.row);
      device_rows.push_back(launch.device_row);
      works.push_back(launch.works);
      start_ns.push_back(launch.start_ns);
      host_s.push_back(seconds(columns.duration_ns[launch.row]));
      device_s.push_back(seconds(launch.device_ns));
      delay_s.push_back(
          seconds(std::max<std::int64_t>(0, launch.device_start_ns - columns.end_ns(launch.row))));
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
