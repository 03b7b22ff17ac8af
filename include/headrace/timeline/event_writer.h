// Writes events of the Chrome trace format, which Perfetto and chrome://tracing open.
//
//     EventWriter events(gzip, base_ns);
//     const Row row = events.row(pid, tid);
//     const auto decode = events.slice_name(row, "decode");
//     for (...) events.slice(decode, begin_ns, end_ns);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "headrace/timeline/gzip_writer.h"

namespace headrace::timeline {

/// A thread's row of a process in the timeline.
struct Row {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
};

/// Every event has the category `headrace`. Times are nanoseconds of the Unix epoch; in the file they are
/// microseconds since `base_ns` with three decimals. Commas between events are the writer's business. Not
/// thread-safe.
class EventWriter {
 public:
  /// `first`: no event precedes the first one in the array.
  EventWriter(GzipWriter& out, std::int64_t base_ns, bool first)
      : out_(out), base_ns_(base_ns), first_(first) {}

  /// Common part of many events, as text: escaped once.
  struct Prepared {
    std::string head;
  };
  Prepared slice_name(const Row& row, std::string_view name) const;
  /// `args`: members of a JSON object ("\"batch\":7"), or nothing.
  void slice(const Prepared& name, std::int64_t begin_ns, std::int64_t end_ns, std::string_view args = {});

  Prepared counter_name(std::int64_t pid, std::string_view name) const;
  void counter(const Prepared& name, std::int64_t at_ns, double value);

  /// An arrow: begins (`s`), passes (`t`) and ends (`f`) inside slices, at those slices' times.
  void flow(char phase, const Row& row, std::uint64_t id, std::int64_t at_ns);
  /// `flow` inside a row of another writer's process, which is named by JSON texts (numbers or strings).
  void flow(char phase, std::string_view pid_json, std::string_view tid_json, std::uint64_t id,
            std::int64_t at_ns);

  void process_name(std::int64_t pid, std::string_view name, std::string_view labels,
                    std::int64_t sort_index);
  void rename_process(std::string_view pid_json, std::string_view name);
  void thread_name(const Row& row, std::string_view name, std::int64_t sort_index);

  std::uint64_t slices() const noexcept { return slices_; }
  std::uint64_t counters() const noexcept { return counters_; }
  std::uint64_t flows() const noexcept { return flows_; }

 private:
  void metadata(std::string_view name, std::string_view pid, std::string_view tid, std::string_view args);
  /// Start of an event: a comma, except for the first one.
  std::string_view separator() noexcept { return std::exchange(first_, false) ? "" : ",\n"; }
  /// Gives `write` room for its line, whose first part is `head`, and takes what it returns as the line's
  /// end.
  template <class Write>
  void line(const Prepared& name, std::size_t most, Write&& write);

  GzipWriter& out_;
  std::int64_t base_ns_;
  bool first_;
  std::uint64_t slices_ = 0;
  std::uint64_t counters_ = 0;
  std::uint64_t flows_ = 0;
};

}  // namespace headrace::timeline
