#include "headrace/analysis/device/launches.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

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
  Rows<LaunchesColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    const std::vector<Launch> launches = launches_of(trace, all.work);
    const bool worked = !std::exchange(all.work, {}).empty();
    if (launches.empty() && worked)
      rows.note(trace.rank, ": the file has no call that started its work on the device");
    // Not before: what was freed until now is used again.
    if (rows.size() == 0) rows.reserve(most_works(traces));
    for (const Launch& launch : launches) {
      if (launch.only_memory && !options.memory) continue;
      const std::int64_t delay_ns = columns.start_ns[launch.device_row] - columns.end_ns(launch.row);
      rows.add(trace.rank, columns.correlation[launch.row], columns.name_of(launch.row), launch.row,
               launch.device_row, launch.works, columns.start_ns[launch.row],
               seconds(columns.duration_ns[launch.row]), seconds(launch.device_ns),
               seconds(std::max<std::int64_t>(0, delay_ns)));
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
