// The traces of a file that holds several processes, while a reader fills them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/trace/reader.h"
#include "trace/event_rows.h"

namespace headrace::trace {

/// The trace of one process: the rows of its threads, and of the streams of the devices as it sees them.
/// Neither copied nor moved.
struct ProcessTrace {
  ProcessTrace(const std::string& path, std::int64_t process, const ReadOptions& options);
  ProcessTrace(const ProcessTrace&) = delete;
  ProcessTrace& operator=(const ProcessTrace&) = delete;

  Names::Id intern(std::string_view text) { return file.columns.names.intern(text); }

  /// `thread` has less than 25 bits. Ranges that do not nest in their thread's events have a row of their
  /// own.
  std::uint32_t thread_lane(std::int64_t thread, std::string_view label, bool nests = true);
  /// `stream`: kAbsent for work that is on none. `label`: what it is called, "" for its number.
  std::uint32_t device_lane(std::int64_t device, std::int64_t stream, std::string_view label = "");

  /// Work of a device, which becomes its argument `device`. False as `EventRows::add`.
  bool add_work(const EventRow& event, std::int64_t device);
  bool has_work() const noexcept { return lowest_device != std::numeric_limits<std::int64_t>::max(); }

  std::int64_t pid = 0;
  /// Label of rows of devices, before their number.
  std::string device_kind = "GPU";
  TraceFile file;
  EventRows rows;
  /// Lowest device with work.
  std::int64_t lowest_device = std::numeric_limits<std::int64_t>::max();
  /// It calls a device's runtime.
  bool calls = false;

 private:
  std::pair<std::int64_t, std::int64_t> last_row_{-1, -1};
  std::uint32_t last_lane_ = 0;
};

/// The ranks among the processes, by device: those that have work on one; if none has, those that call its
/// runtime; if none does, all. The others are left out with a remark. `remarks` go to the first. Never empty.
std::vector<TraceFile> ranks_of(const std::vector<ProcessTrace*>& processes, std::vector<std::string> remarks,
                                const std::string& path);

/// Files of the ranks that another tool put into one, each event with its own in the argument `rank`; ordered
/// by rank. The file as it is unless each row of its timeline is of one rank, and they differ.
std::vector<TraceFile> split_ranks(TraceFile file);

/// Text for JSON's quotes as it is: the first 100 characters, without those that may not stand there.
std::string plain_text(std::string_view text);

}  // namespace headrace::trace
