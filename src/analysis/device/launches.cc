#include "headrace/analysis/device/launches.h"

#include <algorithm>
#include <cstdint>
#include <string>
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

namespace {

/// When a stream's work was launched and when it began, both ascending.
struct Waiting {
  std::vector<std::int64_t> puts_ns;
  std::vector<std::int64_t> takes_ns;
};

struct WaitingByStream {
  /// As `DeviceWork::streams`.
  std::vector<Waiting> streams;
  std::size_t without_launch = 0;
};

WaitingByStream waiting_on(const trace::Trace& trace, const DeviceWork& all) {
  WaitingByStream result;
  result.streams.resize(all.streams.size());
  std::vector<std::size_t> sizes(all.streams.size());
  for (const Work& each : all.work) ++sizes[each.stream];
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    result.streams[i].puts_ns.reserve(sizes[i]);
    result.streams[i].takes_ns.reserve(sizes[i]);
  }
  for (const Work& each : all.work) {
    const trace::Row launch = trace.correlation.launch_of(each.row);
    if (launch == trace::kNoRow) {
      ++result.without_launch;
      continue;
    }
    Waiting& stream = result.streams[each.stream];
    // The clocks of host and device may be a little apart: nothing is taken before it is there.
    stream.puts_ns.push_back(std::min(trace.columns().start_ns[launch], each.start_ns));
    stream.takes_ns.push_back(each.start_ns);
  }
  for (Waiting& stream : result.streams) {
    if (!std::is_sorted(stream.puts_ns.begin(), stream.puts_ns.end()))
      std::sort(stream.puts_ns.begin(), stream.puts_ns.end());
  }
  return result;
}

/// Adds a row per change of one stream. Returns how long each length held, up to the greatest.
std::vector<std::int64_t> add_changes(std::int64_t rank, const Stream& stream, const Waiting& waiting,
                                      Rows<QueueLengthSeriesColumns>& rows) {
  std::vector<std::int64_t> held_ns;
  std::int64_t length = 0;
  std::int64_t since_ns = 0;
  const auto change = [&](std::int64_t time_ns, std::int64_t by) {
    if (!held_ns.empty()) held_ns[static_cast<std::size_t>(length)] += time_ns - since_ns;
    length += by;
    since_ns = time_ns;
    if (static_cast<std::size_t>(length) >= held_ns.size())
      held_ns.resize(static_cast<std::size_t>(length) + 1);
    rows.add(rank, stream.device, stream.stream, time_ns, length);
  };
  auto put = waiting.puts_ns.begin();
  for (const std::int64_t take_ns : waiting.takes_ns) {
    for (; put != waiting.puts_ns.end() && *put <= take_ns; ++put) change(*put, 1);
    change(take_ns, -1);
  }
  return held_ns;
}

}  // namespace

QueueLength queue_length(std::span<const trace::Trace> traces, const QueueLengthOptions& options) {
  Rows<QueueLengthSeriesColumns> series;
  Rows<QueueLengthColumns> summary;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    summary.take_notes(all.notes);
    const WaitingByStream by_stream = waiting_on(trace, all);
    all.work = {};  // the series is the larger part of the memory here
    for (std::size_t i = 0; i < all.streams.size(); ++i) {
      const Waiting& waiting = by_stream.streams[i];
      if (waiting.takes_ns.empty()) continue;

      // At the first row and not before: what was freed until then is used again.
      if (series.size() == 0) series.reserve(2 * most_works(traces));
      const std::vector<std::int64_t> held_ns = add_changes(trace.rank, all.streams[i], waiting, series);
      std::int64_t full_ns = 0;
      std::vector<Held> held;
      for (std::size_t length = 0; length < held_ns.size(); ++length) {
        held.push_back({static_cast<double>(length), held_ns[length]});
        if (static_cast<std::int64_t>(length) >= options.capacity) full_ns += held_ns[length];
      }
      const TimeWeighted over_time = weigh(std::move(held));
      summary.add(trace.rank, all.streams[i].device, all.streams[i].stream, waiting.takes_ns.size(),
                  over_time.mean, over_time.p25, over_time.p50, over_time.p75, held_ns.size() - 1,
                  seconds(full_ns), percent(full_ns, over_time.total_ns));
    }
    if (by_stream.without_launch > 0)
      summary.note(trace.rank, ": " + std::to_string(by_stream.without_launch) +
                                   " pieces of work whose launch is not in the file are left out");
  }
  return {series.take(), summary.take()};
}

}  // namespace headrace::analysis::device
