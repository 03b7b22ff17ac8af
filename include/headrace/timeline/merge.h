// One timeline of a run and the device traces that were recorded beside it.
//
//     const auto merged = headrace::timeline::merge({.segments = {"runs/a/rank0.hrseg"},
//                                                    .traces = {"trace.json.gz"}, .out = "merged.json.gz"});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/timeline/clock_alignment.h"

namespace headrace::timeline {

struct MergeRequest {
  std::vector<std::string> segments;  ///< of one run; a live one is read as it is now
  std::vector<std::string> traces;    ///< files of a device profiler, gzip or not; may be none
  std::string out;                    ///< gzip, or plain JSON where it ends in ".json"
  /// How far the work is, 0 to 1; called from the calling thread, a few times per MiB.
  std::function<void(double)> progress = {};
};

struct MergeResult {
  std::string path;
  std::uint64_t slices = 0;  ///< of ours
  std::uint64_t counters = 0;
  std::uint64_t flows = 0;
  std::uint64_t bytes = 0;  ///< of the file
  /// The largest error of all pairs of a run and a trace; nothing: unknown for one of them, or no trace.
  std::optional<std::int64_t> clock_error_ns;
  std::vector<std::string> notes;  ///< a sentence each: clocks, what was left out, what is missing
};

/// Writes a file for Perfetto and chrome://tracing. The first trace's document is copied unchanged, the file
/// uses its clock, and our events follow its own. Events of further traces (ranks) get other processes, flows
/// and times, so that they do not collide. Without a trace the run alone makes a timeline.
///
/// A trace belongs to the segment of its rank (where there is one of each: to that). Memory: the columns of
/// one trace and a few windows. Throws FormatError, SegmentError or Error.
MergeResult merge(const MergeRequest& request);

}  // namespace headrace::timeline
