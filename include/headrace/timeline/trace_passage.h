// Hands a device trace's own events on as they stand in the file.
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

/// What is changed in the events of a trace so that it can stand beside another one. Nothing: they are copied
/// byte for byte.
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
class TracePassage {
 public:
  /// Called now and then with the bytes of the file that were read.
  using Progress = std::function<void(std::uint64_t bytes)>;

  TracePassage(trace::ByteSource& bytes, std::string name, GzipWriter& out, Progress progress = {})
      : bytes_(bytes), name_(std::move(name)), out_(out), progress_(std::move(progress)) {}

  /// The whole document, byte for byte; before the `]` of its events `more` is called and may write
  /// further ones (`any`: some stand there already). False when the file is no complete JSON document with an
  /// events array: what was written is then of no use.
  bool pass_document(const std::function<void(bool any)>& more);

  /// The events alone. `wrote_any`: whether some stand before them, and afterwards. `careful`: each is looked
  /// at and left out when it is no JSON; for files that a reader had something to say about. Returns how many
  /// were left out.
  std::uint64_t pass_events(const EventChanges& changes, bool careful, bool& wrote_any);

 private:
  trace::ByteSource& bytes_;
  std::string name_;
  GzipWriter& out_;
  Progress progress_;
};

}  // namespace headrace::timeline
