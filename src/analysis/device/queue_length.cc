#include "headrace/analysis/device/queue_length.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/rank_rows.h"
#include "analysis/device/stream_rows.h"
#include "headrace/analysis/device/describe.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct Level {
  std::int64_t time_ns = 0;
  std::int64_t length = 0;
};

struct Waiting {
  std::vector<Level> levels;
  std::size_t launches = 0;
  std::size_t without_launch = 0;
};

Waiting waiting_on(const trace::Trace& trace, std::span<const Work> work) {
  std::vector<std::int64_t> puts_ns;
  std::vector<std::int64_t> takes_ns;
  Waiting result;
  for (const Work& each : work) {
    const trace::Row launch = trace.correlation.launch_of(each.row);
    if (launch == trace::kNoRow) {
      ++result.without_launch;
      continue;
    }
    // The clocks of host and device may be a little apart: nothing is taken before it is there.
    puts_ns.push_back(std::min(trace.columns().start_ns[launch], each.start_ns));
    takes_ns.push_back(each.start_ns);
  }
  result.launches = puts_ns.size();
  if (!std::is_sorted(puts_ns.begin(), puts_ns.end())) std::sort(puts_ns.begin(), puts_ns.end());

  std::int64_t length = 0;
  result.levels.reserve(2 * puts_ns.size());
  auto put = puts_ns.begin();
  for (const std::int64_t take_ns : takes_ns) {
    for (; put != puts_ns.end() && *put <= take_ns; ++put) result.levels.push_back({*put, ++length});
    result.levels.push_back({take_ns, --length});
  }
  return result;
}

}  // namespace

QueueLength queue_length(std::span<const trace::Trace> traces, const QueueLengthOptions& options) {
  QueueLength result;
  StreamRows rows, summary_rows;
  Integers time_ns, length, launches, longest;
  Numbers mean, p25, p50, p75, full_s, full_pct;
  for (const trace::Trace& trace : traces) {
    const DeviceWork all = device_work(trace, options.scope);
    take_notes(result.summary, all.notes);
    std::size_t without_launch = 0;
    for (const WorkOf& each : all.by_stream()) {
      const Waiting waiting = waiting_on(trace, each.work);
      without_launch += waiting.without_launch;
      if (waiting.levels.empty()) continue;

      std::int64_t most = 0;
      std::int64_t full_ns = 0;
      std::vector<Held> held;
      held.reserve(waiting.levels.size());
      for (std::size_t i = 0; i < waiting.levels.size(); ++i) {
        const Level& level = waiting.levels[i];
        rows.add(trace.rank, each.of);
        time_ns.push_back(level.time_ns);
        length.push_back(level.length);
        most = std::max(most, level.length);
        if (i + 1 == waiting.levels.size()) continue;
        const std::int64_t duration_ns = waiting.levels[i + 1].time_ns - level.time_ns;
        held.push_back({static_cast<double>(level.length), duration_ns});
        if (level.length >= options.capacity) full_ns += duration_ns;
      }
      const TimeWeighted over_time = weigh(std::move(held));
      summary_rows.add(trace.rank, each.of);
      launches.push_back(static_cast<std::int64_t>(waiting.launches));
      mean.push_back(over_time.mean);
      p25.push_back(over_time.p25);
      p50.push_back(over_time.p50);
      p75.push_back(over_time.p75);
      longest.push_back(most);
      full_s.push_back(seconds(full_ns));
      full_pct.push_back(percent(full_ns, over_time.total_ns));
    }
    if (without_launch > 0)
      result.summary.notes.push_back("rank " + std::to_string(trace.rank) + ": " +
                                     std::to_string(without_launch) +
                                     " pieces of work whose launch is not in the file are left out");
  }
  rows.put_into(result.series);
  result.series.add("time_ns", std::move(time_ns)).add("queue_length", std::move(length));
  summary_rows.put_into(result.summary);
  result.summary.add("launches", std::move(launches))
      .add("mean", std::move(mean))
      .add("p25", std::move(p25))
      .add("p50", std::move(p50))
      .add("p75", std::move(p75))
      .add("max", std::move(longest))
      .add("full_s", std::move(full_s))
      .add("full_pct", std::move(full_pct));
  return result;
}

}  // namespace headrace::analysis::device
