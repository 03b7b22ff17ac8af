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

/// One row per change, and how long each length held.
class Series {
 public:
  explicit Series(std::size_t most_works) : most_rows_(2 * most_works) {}

  void add(std::int64_t rank, const Stream& stream, const Waiting& waiting) {
    const std::size_t first = time_ns_.size();
    if (first == 0) make_room();
    held_ns_.clear();
    std::int64_t length = 0;
    auto put = waiting.puts_ns.begin();
    for (const std::int64_t take_ns : waiting.takes_ns) {
      for (; put != waiting.puts_ns.end() && *put <= take_ns; ++put) append(*put, ++length);
      append(take_ns, --length);
    }
    for (std::size_t i = first; i < time_ns_.size(); ++i) {
      rows_.add(rank, stream);
      const auto at = static_cast<std::size_t>(length_[i]);
      if (at >= held_ns_.size()) held_ns_.resize(at + 1);
      if (i + 1 < time_ns_.size()) held_ns_[at] += time_ns_[i + 1] - time_ns_[i];
    }
  }

  /// Of the stream that was added last: time by length, up to the greatest.
  const std::vector<std::int64_t>& held_ns() const noexcept { return held_ns_; }

  void put_into(Table& table) {
    rows_.put_into(table);
    table.add("time_ns", std::move(time_ns_)).add("queue_length", std::move(length_));
  }

 private:
  /// At the first row and not before: what was freed until then is used again.
  void make_room() {
    rows_.reserve(most_rows_);
    for (Integers* column : {&time_ns_, &length_}) column->reserve(most_rows_);
  }
  void append(std::int64_t time_ns, std::int64_t length) {
    time_ns_.push_back(time_ns);
    length_.push_back(length);
  }

  std::size_t most_rows_;
  StreamRows rows_;
  Integers time_ns_, length_;
  std::vector<std::int64_t> held_ns_;
};

}  // namespace

QueueLength queue_length(std::span<const trace::Trace> traces, const QueueLengthOptions& options) {
  QueueLength result;
  Series series(most_works(traces));
  StreamRows summary_rows;
  Integers launches, longest;
  Numbers mean, p25, p50, p75, full_s, full_pct;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    take_notes(result.summary, all.notes);
    const WaitingByStream by_stream = waiting_on(trace, all);
    all.work = {};  // the series is the larger part of the memory here
    for (std::size_t i = 0; i < all.streams.size(); ++i) {
      const Waiting& waiting = by_stream.streams[i];
      if (waiting.takes_ns.empty()) continue;

      series.add(trace.rank, all.streams[i], waiting);
      std::int64_t full_ns = 0;
      std::vector<Held> held;
      for (std::size_t length = 0; length < series.held_ns().size(); ++length) {
        held.push_back({static_cast<double>(length), series.held_ns()[length]});
        if (static_cast<std::int64_t>(length) >= options.capacity) full_ns += held.back().duration_ns;
      }
      const auto most = static_cast<std::int64_t>(held.size()) - 1;
      const TimeWeighted over_time = weigh(std::move(held));
      summary_rows.add(trace.rank, all.streams[i]);
      launches.push_back(static_cast<std::int64_t>(waiting.takes_ns.size()));
      mean.push_back(over_time.mean);
      p25.push_back(over_time.p25);
      p50.push_back(over_time.p50);
      p75.push_back(over_time.p75);
      longest.push_back(most);
      full_s.push_back(seconds(full_ns));
      full_pct.push_back(percent(full_ns, over_time.total_ns));
    }
    if (by_stream.without_launch > 0)
      result.summary.notes.push_back("rank " + std::to_string(trace.rank) + ": " +
                                     std::to_string(by_stream.without_launch) +
                                     " pieces of work whose launch is not in the file are left out");
  }
  series.put_into(result.series);
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
