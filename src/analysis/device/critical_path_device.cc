#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/device/critical_path_builder.h"

namespace headrace::analysis::device {
namespace {

using trace::Row;

constexpr std::size_t kNoWork = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

/// Work of the graph in the order in which it was launched, on one stream and on one stream from one thread.
class LaunchOrder {
  struct Entry {
    std::uint32_t stream;
    std::uint32_t lane;
    std::int64_t launched_ns;
    std::size_t work;

    static bool before(const Entry& a, const Entry& b) noexcept {
      return std::tie(a.stream, a.lane, a.launched_ns, a.work) <
             std::tie(b.stream, b.lane, b.launched_ns, b.work);
    }
  };

 public:
  LaunchOrder(const trace::Trace& trace, std::span<const Work> work) {
    const trace::Columns& columns = trace.columns();
    for (std::size_t i = 0; i < work.size(); ++i) {
      const Row launch = trace.correlation.launch_of(work[i].row);
      on_stream_.push_back({work[i].stream, 0, columns.start_ns[launch], i});
      from_thread_.push_back({work[i].stream, columns.lane[launch], columns.start_ns[launch], i});
    }
    std::sort(on_stream_.begin(), on_stream_.end(), Entry::before);
    std::sort(from_thread_.begin(), from_thread_.end(), Entry::before);
  }

  /// The last work that was launched to the stream before that moment.
  std::size_t last_before(std::uint32_t stream, std::int64_t ns) const {
    const auto at =
        std::lower_bound(on_stream_.begin(), on_stream_.end(), Entry{stream, 0, ns, 0}, Entry::before);
    if (at == on_stream_.begin() || std::prev(at)->stream != stream) return kNoWork;
    return std::prev(at)->work;
  }

  /// The first work that the thread launched to the stream after that moment.
  std::size_t first_after(std::uint32_t stream, std::uint32_t lane, std::int64_t ns) const {
    const auto at = std::upper_bound(from_thread_.begin(), from_thread_.end(),
                                     Entry{stream, lane, ns, kNoWork}, Entry::before);
    if (at == from_thread_.end() || at->stream != stream || at->lane != lane) return kNoWork;
    return at->work;
  }

 private:
  std::vector<Entry> on_stream_;
  std::vector<Entry> from_thread_;
};

/// For each launched row of the trace whether it met an empty queue: nothing waited on its stream when it was
/// launched, and nothing had been launched behind it when it started. A graph counts once, by its first work.
std::vector<bool> met_an_empty_queue(const trace::Trace& trace) {
  std::vector<bool> result(trace.columns().size(), false);
  for (const WorkOf& each : device_work(trace, Scope::everything()).by_stream()) {
    struct Change {
      std::int64_t time_ns;
      bool starts;
      Row row;
    };
    std::vector<Change> changes;
    for (const Work& work : each.work) {
      const Row launch = trace.correlation.launch_of(work.row);
      if (launch == trace::kNoRow) continue;
      const std::span<const Row> started = trace.correlation.started_by(launch);
      const auto first = std::find_if(started.begin(), started.end(),
                                      [&](Row row) { return trace::is_device_work(trace.kinds[row]); });
      if (first == started.end() || *first != work.row) continue;
      changes.push_back({std::min(trace.columns().start_ns[launch], work.start_ns), false, work.row});
      changes.push_back({work.start_ns, true, work.row});
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return std::tie(a.time_ns, a.starts, a.row) < std::tie(b.time_ns, b.starts, b.row);
    });
    std::int64_t length = 0;
    for (const Change& change : changes) {
      if (!change.starts) {
        ++length;
        result[change.row] = length == 1;
      } else {
        --length;
        if (length != 0) result[change.row] = false;
      }
    }
  }
  return result;
}

enum class Wait { stream, context, event, stream_for_event, unknown };

Wait wait_of(std::string_view name) noexcept {
  if (name.starts_with("Stream Wait Event")) return Wait::stream_for_event;
  if (name.starts_with("Stream Sync")) return Wait::stream;
  if (name.starts_with("Context Sync")) return Wait::context;
  if (name.starts_with("Event Sync")) return Wait::event;
  return Wait::unknown;
}

class DeviceEdges {
 public:
  DeviceEdges(CriticalPathBuilder& builder, const CriticalPathEvents& events,
              const CriticalPathOptions& options)
      : builder_(builder),
        trace_(builder.trace()),
        columns_(trace_.columns()),
        events_(events),
        options_(options),
        launch_order_(trace_, events.work),
        met_an_empty_queue_(met_an_empty_queue(trace_)),
        last_on_(events.streams.size(), kNoWork),
        latest_source_ns_(events.work.size(), kNever) {
    const std::vector<bool> records_events = names_containing(columns_, {"EventRecord"});
    for (Row row = 0; row < columns_.size(); ++row) {
      if (trace_.kinds[row] == trace::EventKind::runtime && records_events[columns_.name[row]])
        records_.emplace_back(columns_.correlation[row], row);
    }
    std::sort(records_.begin(), records_.end());
  }

  /// Waits end before work starts at the same moment: it is not what they waited for.
  void add() {
    for (const Row wait : events_.waits) {
      if (wait_of(columns_.name_of(wait)) == Wait::stream_for_event) add_stream_wait(wait);
    }
    auto wait = events_.waits.begin();
    for (std::size_t i = 0; i < events_.work.size(); ++i) {
      for (; wait != events_.waits.end() && columns_.end_ns(*wait) <= events_.work[i].start_ns; ++wait)
        add_host_wait(*wait);
      add_work(i);
      last_on_[events_.work[i].stream] = i;
    }
    for (; wait != events_.waits.end(); ++wait) add_host_wait(*wait);
  }

 private:
  const Work& work(std::size_t i) const { return events_.work[i]; }

  void add_work(std::size_t i) {
    const Row row = work(i).row;
    builder_.timed(builder_.start_of(row), builder_.end_of(row), EdgeType::operator_kernel, row);

    const Row launch = trace_.correlation.launch_of(row);
    const std::int64_t launched_ns = columns_.start_ns[launch];
    const std::size_t before = last_on_[work(i).stream];
    const std::int64_t before_end_ns = before == kNoWork ? kNever : work(before).end_ns;
    const bool launch_in_graph = builder_.start_of(launch) != CriticalPathGraph::kNoNode;
    if (launch_in_graph && met_an_empty_queue_[row] && before_end_ns <= launched_ns &&
        latest_source_ns_[i] <= launched_ns) {
      builder_.timed(builder_.start_of(launch), builder_.start_of(row), EdgeType::launch_delay, launch);
      return;
    }
    if (before != kNoWork && work(i).start_ns - before_end_ns < options_.longest_kernel_gap_ns &&
        latest_source_ns_[i] <= before_end_ns) {
      builder_.timed(builder_.end_of(work(before).row), builder_.start_of(row), EdgeType::kernel_kernel_delay,
                     work(before).row);
    }
    if (launch_in_graph && options_.zero_weight_launch_edges)
      builder_.untimed(builder_.start_of(launch), builder_.start_of(row), EdgeType::launch_delay, launch);
  }

  /// The call returns when the last work of the stream, of all streams, or before an event has ended.
  void add_host_wait(Row wait) {
    switch (wait_of(columns_.name_of(wait))) {
      case Wait::stream:
        if (const auto stream = number_of(stream_of(columns_, wait))) wait_for(last_on_[*stream], wait);
        break;
      case Wait::context:
        wait_for_device(stream_of(columns_, wait).device, wait);
        break;
      case Wait::event:
        wait_for(work_before_event(wait), wait);
        break;
      case Wait::stream_for_event:
      case Wait::unknown:
        break;
    }
  }

  /// All its streams; those of every device where no work is of this one.
  void wait_for_device(std::int64_t device, Row wait) {
    const auto is_of_it = [&](const Stream& stream) { return stream.device == device; };
    const bool known = std::any_of(events_.streams.begin(), events_.streams.end(), is_of_it);
    for (std::size_t i = 0; i < last_on_.size(); ++i) {
      if (!known || is_of_it(events_.streams[i])) wait_for(last_on_[i], wait);
    }
  }

  void wait_for(std::size_t i, Row wait) {
    const Row call = trace_.correlation.launch_of(wait);
    if (i == kNoWork || builder_.end_of(call) == CriticalPathGraph::kNoNode) return;
    builder_.untimed(builder_.end_of(work(i).row), builder_.end_of(call), EdgeType::sync_dependency, call);
  }

  /// A stream's next work waits for another's work before an event.
  void add_stream_wait(Row wait) {
    const auto stream = number_of(stream_of(columns_, wait));
    const std::size_t source = work_before_event(wait);
    if (!stream || source == kNoWork) return;
    const Row call = trace_.correlation.launch_of(wait);
    const std::size_t target =
        launch_order_.first_after(*stream, columns_.lane[call], columns_.start_ns[call]);
    // A stream does one thing after the other anyway.
    if (target == kNoWork || work(target).stream == work(source).stream) return;
    latest_source_ns_[target] = std::max(latest_source_ns_[target], work(source).end_ns);
    builder_.untimed(builder_.end_of(work(source).row), builder_.start_of(work(target).row),
                     EdgeType::sync_dependency, work(source).row);
  }

  /// The last work that was launched to the stream before the event was recorded.
  std::size_t work_before_event(Row wait) const {
    const auto record = integer_at(columns_.argument("wait_on_cuda_event_record_corr_id"), wait);
    const auto stream_number = integer_at(columns_.argument("wait_on_stream"), wait);
    if (!record || !stream_number) return kNoWork;
    const auto at = std::lower_bound(records_.begin(), records_.end(), std::pair(*record, Row{0}));
    if (at == records_.end() || at->first != *record) return kNoWork;
    const auto stream = number_of({stream_of(columns_, wait).device, *stream_number});
    return stream ? launch_order_.last_before(*stream, columns_.start_ns[at->second]) : kNoWork;
  }

  std::optional<std::uint32_t> number_of(const Stream& stream) const {
    const auto at = std::lower_bound(events_.streams.begin(), events_.streams.end(), stream);
    if (at == events_.streams.end() || *at != stream) return std::nullopt;
    return static_cast<std::uint32_t>(at - events_.streams.begin());
  }

  CriticalPathBuilder& builder_;
  const trace::Trace& trace_;
  const trace::Columns& columns_;
  const CriticalPathEvents& events_;
  const CriticalPathOptions& options_;
  LaunchOrder launch_order_;
  std::vector<bool> met_an_empty_queue_;
  /// By stream the last work so far.
  std::vector<std::size_t> last_on_;
  /// For each work the latest end of what its stream had to wait for.
  std::vector<std::int64_t> latest_source_ns_;
  /// Calls that recorded events: correlation and row, ascending.
  std::vector<std::pair<std::int64_t, Row>> records_;
};

}  // namespace

void add_device(CriticalPathBuilder& builder, const CriticalPathEvents& events,
                const CriticalPathOptions& options) {
  DeviceEdges(builder, events, options).add();
}

}  // namespace headrace::analysis::device
