// Copies a device trace's own events unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/timeline/gzip_writer.h"
#include "headrace/trace/byte_source.h"

namespace headrace::timeline {

/// How the events of a trace change so that they do not collide with those of another trace in the same file.
/// Without changes, events are copied byte for byte.
struct EventChanges {
  std::int64_t add_to_pid = 0;  ///< numeric processes
  std::string suffix;           ///< for processes that are named, and for the ids of flows
  std::int64_t add_to_ts_ns = 0;

  bool any() const noexcept { return add_to_pid != 0 || !suffix.empty() || add_to_ts_ns != 0; }
};

/// The pid of an event after the changes, as JSON: `process` is what the file says, `pid` its number or -1.
std::string changed_pid(std::string_view process, std::int64_t pid, const EventChanges& changes);

/// One event (the text of a JSON object) with the changes made, appended to `changed`.
void change_event(std::string_view event, const EventChanges& changes, std::string& changed);

/// Streams a file (gzip or not) through a window of about a MiB.
class TraceCopier {
 public:
  /// Called now and then with the number of bytes read so far.
  using Progress = std::function<void(std::uint64_t bytes)>;

  TraceCopier(trace::ByteSource& bytes, std::string name, GzipWriter& out, Progress progress = {})
      : bytes_(bytes), name_(std::move(name)), out_(out), progress_(std::move(progress)) {}

  /// Copies the whole document byte for byte. `more` is called before the `]` of its events array and may
  /// write further events (`any`: the array has some already). False if the file is not a complete JSON
  /// document with an events array; discard what was written then.
  bool copy_document(const std::function<void(bool any)>& more);

  /// Copies the events alone. `wrote_any`: in, whether events precede these; out, whether any have been
  /// written. `careful`: parse each event and skip it if it is not valid JSON (for files that the reader
  /// reported as damaged). Returns the number of skipped events.
  std::uint64_t copy_events(const EventChanges& changes, bool careful, bool& wrote_any);

 private:
  trace::ByteSource& bytes_;
  std::string name_;
  GzipWriter& out_;
  Progress progress_;
};

}  // namespace headrace::timeline
