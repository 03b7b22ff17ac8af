#include "headrace/timeline/open_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/timeline/json_text.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/reader.h"

namespace headrace::timeline {
namespace {

using trace::Columns;

/// The events of columns as text, made while it is read.
class EventTexts : public trace::ByteSource {
 public:
  EventTexts(std::vector<trace::TraceFile> traces, std::vector<trace::ascend::Counter> counters)
      : traces_(std::move(traces)), counters_(std::move(counters)) {
    text_ = "[";
    for (const trace::TraceFile& trace : traces_) {
      for (const trace::Lane& lane : trace.columns.lanes) {
        label(lane, "process_name", "name", lane.process_name);
        label(lane, "process_labels", "labels", lane.process_labels);
        label(lane, "thread_name", "name", lane.thread_name);
      }
    }
    for (const trace::ascend::Counter& counter : counters_) {
      trace::Lane row;
      row.pid = counter.pid;
      label(row, "process_name", "name", counter.process);
      label(row, "process_labels", "labels", "NPU");
    }
  }

  std::size_t read(std::span<char> into) override {
    while (at_ == text_.size() && !ended_) {
      at_ = 0;
      text_.clear();
      constexpr std::size_t kChunk = std::size_t{64} << 10;
      while (!traces_.empty() && text_.size() < kChunk) next_event();
      while (traces_.empty() && !counters_.empty() && text_.size() < kChunk) next_value();
      if (traces_.empty() && counters_.empty()) {
        text_ += "\n]";
        ended_ = true;
      }
    }
    const std::size_t count = std::min(into.size(), text_.size() - at_);
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(at_), count, into.begin());
    at_ += count;
    return count;
  }

 private:
  void begin_event() {
    text_ += any_ ? ",\n" : "\n";
    any_ = true;
  }

  void label(const trace::Lane& lane, const char* kind, const char* key, const std::string& text) {
    const bool of_process = std::string_view(kind) != "thread_name";
    if (text.empty() || (of_process && !labelled_.emplace(lane.pid, kind).second)) return;
    begin_event();
    text_ += fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", kind, lane.pid,
                         lane.tid, key, json_text(text));
  }

  static std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

  /// One event of the last trace, which goes once it has no more.
  void next_event() {
    const Columns& columns = traces_.back().columns;
    if (next_ < columns.size()) {
      event(columns, next_++);
    } else {
      traces_.pop_back();
      next_ = 0;
    }
  }

  void event(const Columns& columns, trace::Row row) {
    const trace::Lane& lane = columns.lanes[columns.lane[row]];
    begin_event();
    text_ += fmt::format(R"({{"ph":"{}","cat":{},"name":{},"pid":{},"tid":{},"ts":{})", columns.phase[row],
                         json_text(columns.category_of(row)), json_text(columns.name_of(row)), lane.pid,
                         lane.tid, microseconds(columns.start_ns[row]));
    if (columns.phase[row] == 'X') {
      text_ +=
          fmt::format(R"(,"dur":{},"args":{{"stream":{},"correlation":{}}})",
                      microseconds(columns.duration_ns[row]), columns.stream[row], columns.correlation[row]);
    } else if (const auto flow = columns.flow_id.find(row)) {
      text_ += fmt::format(R"(,"bp":"e","id":{})", columns.flow_id.integers[*flow]);
    }
    text_ += '}';
  }

  /// One value of the last counter, which goes once it has no more.
  void next_value() {
    const trace::ascend::Counter& counter = counters_.back();
    if (next_of_counter_ == counter.values.size()) {
      counters_.pop_back();
      next_of_counter_ = 0;
      return;
    }
    const auto& [at_ns, value] = counter.values[next_of_counter_++];
    begin_event();
    text_ += fmt::format(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{{}:{}}}}})",
                         json_text(counter.name), counter.pid, microseconds(at_ns), json_text(counter.unit),
                         value);
  }

  std::vector<trace::TraceFile> traces_;
  std::vector<trace::ascend::Counter> counters_;
  std::size_t next_of_counter_ = 0;
  std::set<std::pair<std::int64_t, std::string_view>> labelled_;  ///< processes that have a name or a label
  std::string text_;
  std::size_t at_ = 0;
  trace::Row next_ = 0;
  bool any_ = false;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<trace::ByteSource> open_events(const std::string& path) {
  if (trace::holds_json_events(path)) return std::make_unique<trace::FileBytes>(path);
  trace::ReadOptions options;
  options.arguments.clear();
  return std::make_unique<EventTexts>(trace::read_traces(path, options), trace::ascend::read_counters(path));
}

}  // namespace headrace::timeline
