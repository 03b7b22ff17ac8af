#include "headrace/timeline/trace_with_counters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/profile/errors.h"
#include "headrace/timeline/event_writer.h"
#include "headrace/timeline/gzip_writer.h"
#include "headrace/timeline/json_text.h"
#include "headrace/timeline/open_events.h"
#include "headrace/timeline/trace_copier.h"
#include "timeline/device_facts.h"
#include "timeline/line_text.h"

namespace headrace::timeline {
namespace {

using analysis::Table;
using analysis::device::DeviceWork;
using analysis::device::KernelKind;
using analysis::device::Stream;
using analysis::device::Work;

/// The processes that counters belong to, as the file writes them: of each stream, and of the first copy.
class Processes {
 public:
  Processes(const trace::Columns& columns, const DeviceWork& all) {
    for (const Work& work : all.work) {
      const trace::Lane& lane = columns.lanes[columns.lane[work.row]];
      of_streams_.try_emplace(all.streams[work.stream], changed_pid(lane.process, lane.pid, {}));
      if (work.kind == KernelKind::memory && of_copies_.empty())
        of_copies_ = changed_pid(lane.process, lane.pid, {});
    }
  }
  const std::string& of(const Stream& stream) const { return of_streams_.at(stream); }
  const std::string& of_copies() const { return of_copies_; }

 private:
  std::map<Stream, std::string> of_streams_;
  std::string of_copies_;
};

/// Events of phase C behind those of a document.
class CounterEvents {
 public:
  /// `first`: no event precedes them.
  CounterEvents(GzipWriter& out, bool first) : out_(out), first_(first) {}

  /// The track that the next points are of. `id`: tells tracks of one name apart, or nothing.
  void begin_track(std::string_view name, std::string_view id, std::string_view pid_json,
                   std::string_view value_name) {
    head_ = ",\n{\"ph\":\"C\",\"cat\":\"headrace\",\"name\":" + json_text(name);
    if (!id.empty()) head_.append(",\"id\":").append(id);
    head_.append(",\"pid\":").append(pid_json).append(",\"tid\":0,\"ts\":");
    tail_ = ",\"args\":{" + json_text(value_name) + ":";
  }

  template <class Value>
  void point(std::int64_t time_ns, Value value) {
    const std::string_view head = std::string_view(head_).substr(std::exchange(first_, false) ? 2 : 0);
    out_.write(head);
    char* const begin = out_.room(tail_.size() + kMaxFigures);
    char* at = put_text(put_microseconds(begin, time_ns), tail_);
    // The shortest digits that read back as the same number.
    at = std::to_chars(at, at + kMaxFigures, value).ptr;
    out_.wrote(static_cast<std::size_t>(put_text(at, "}}") - begin));
    ++count_;
  }

  std::uint64_t count() const noexcept { return count_; }

 private:
  /// Room for the time, the value and what stands between them.
  static constexpr std::size_t kMaxFigures = 256;

  GzipWriter& out_;
  bool first_;
  std::string head_;
  std::string tail_;
  std::uint64_t count_ = 0;
};

class CounterAdder {
 public:
  explicit CounterAdder(const CountersRequest& request)
      : trace_(request.trace),
        out_path_(request.out),
        open_(request.open),
        queues_(analysis::device::queue_length({&trace_, 1}, {request.scope}).series),
        copies_(analysis::device::memory_bandwidth({&trace_, 1}, request.scope).series),
        processes_(trace_.columns(), analysis::device::device_work(trace_, request.scope)) {}

  CountersResult write() {
    if (queues_.rows() == 0 && copies_.rows() == 0)
      throw UsageError(trace_.file.path + ": no launches or copies of a device in it, so nothing to count");
    std::error_code absent;
    if (std::filesystem::equivalent(trace_.file.path, out_path_, absent))
      throw UsageError(out_path_ + " is the trace itself: name another file for the one with counters");
    GzipWriter out(out_path_);
    if (!is_sound(trace_.file) || !copy_document(out)) {
      out.restart();
      result_ = {};
      write_carefully(out);
    }
    out.finish();
    result_.path = out_path_;
    result_.bytes = out.bytes_out();
    return std::move(result_);
  }

 private:
  std::unique_ptr<trace::ByteSource> bytes() const { return open_ ? open_() : open_events(trace_.file.path); }

  /// False if the file is no sound JSON after all.
  bool copy_document(GzipWriter& out) {
    const auto source = bytes();
    return TraceCopier(*source, trace_.file.path, out).copy_document([&](bool any) { add(out, any); });
  }

  /// The trace has something wrong: its sound members and events, in a document of ours.
  void write_carefully(GzipWriter& out) {
    out.write("{");
    for (const std::string& member : sound_members(trace_.file)) out.write(member + ",\n");
    out.write("\"traceEvents\":[\n");
    bool any = false;
    const auto source = bytes();
    TraceCopier passage(*source, trace_.file.path, out);
    const std::uint64_t left_out = passage.copy_events({}, true, any);
    if (left_out > 0)
      result_.notes.push_back(std::to_string(left_out) + (left_out == 1 ? " event" : " events") +
                              " left out: no viewer could read " + (left_out == 1 ? "it" : "them"));
    add(out, any);
    out.write("\n]}\n");
  }

  void add(GzipWriter& out, bool any) {
    CounterEvents events(out, !any);
    add_queues(events);
    add_copies(events);
    result_.counters = events.count();
  }

  // Rows of a track follow each other in both series.

  void add_queues(CounterEvents& events) const {
    std::optional<Stream> stream;
    for (std::size_t row = 0; row < queues_.rows(); ++row) {
      const Stream now{queues_.integers("device")[row], queues_.integers("stream")[row]};
      if (stream != now)
        events.begin_track("Queue Length", std::to_string(now.stream), processes_.of(now), "Queue Length");
      stream = now;
      events.point(queues_.integers("time_ns")[row], queues_.integers("queue_length")[row]);
    }
  }

  void add_copies(CounterEvents& events) const {
    std::string_view name;
    for (std::size_t row = 0; row < copies_.rows(); ++row) {
      const std::string_view now = copies_.texts("name")[row];
      if (row == 0 || now != name) events.begin_track(now, "", processes_.of_copies(), "Memcpy BW");
      name = now;
      // A profiler that wrote "Infinity" has no figure there.
      const double gbps = copies_.numbers("bandwidth_gbps")[row];
      if (std::isfinite(gbps)) events.point(copies_.integers("time_ns")[row], gbps);
    }
  }

  const trace::Trace& trace_;
  const std::string& out_path_;
  const std::function<std::unique_ptr<trace::ByteSource>()>& open_;
  Table queues_;
  Table copies_;
  Processes processes_;
  CountersResult result_;
};

}  // namespace

CountersResult write_with_counters(const CountersRequest& request) { return CounterAdder(request).write(); }

}  // namespace headrace::timeline
