// Facts that a timeline needs of a device trace besides its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/timeline/clock_alignment.h"
#include "headrace/timeline/rank_alignment.h"
#include "headrace/timeline/run_tracks.h"
#include "headrace/timeline/trace_copier.h"
#include "headrace/trace/reader.h"

namespace headrace::timeline {

/// Stamps beyond this are Unix time in nanoseconds (2001); a machine's uptime is not.
inline constexpr std::int64_t kUnixTime = 1'000'000'000'000'000'000;

struct DeviceFacts {
  struct Process {
    std::string process;  ///< as the file writes it
    std::int64_t pid = -1;
    std::string name;
  };
  /// The first kernel that a call on the host launched.
  struct Launch {
    std::int64_t at_ns;
    std::int64_t kernel_ns;
    std::uint32_t thread;  ///< in `threads`
  };
  struct Thread {
    std::string process;
    std::int64_t pid;
    std::string thread;
    std::int64_t tid;
  };

  std::string path;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> base_ns;
  std::int64_t first_ns = 0;  ///< of all events
  std::int64_t last_ns = 0;
  bool whole = false;               ///< the file is sound: its bytes can be handed on as they are
  std::vector<std::string> notes;   ///< of the reader
  std::vector<std::string> header;  ///< sound members of the top-level object besides the events: "key":value
  std::vector<TimeRange> next_calls;       ///< the loader's `__next__` ranges, on the file's clock
  std::vector<CollectiveEnd> collectives;  ///< ascending, on the file's clock
  std::vector<Launch> launches;            ///< ascending
  std::vector<Thread> threads;
  std::vector<Process> processes;

  /// True if `ts` are Unix time, or `base_ns` makes them so.
  bool knows_unix_time() const noexcept;
  /// Shift from the file's stamps to Unix time, if they can be that; else 0.
  std::int64_t unix_base_ns() const noexcept { return base_ns.value_or(0); }
};

/// True if the bytes of the file can be handed on as they are: nothing in it was skipped or repaired.
bool is_sound(const trace::TraceFile& file);

/// The members of the top-level object besides the events that are JSON, each as "key":value.
std::vector<std::string> sound_members(const trace::TraceFile& file);

/// Reads a trace file. Throws FormatError.
DeviceFacts read_device_facts(const std::string& path);

/// The first kernel launched in [begin, end) of Unix time, after `changes` were made to the trace;
/// `unix_of_ts`: what makes Unix time of the file's stamps.
std::optional<DeviceSlice> first_kernel(const DeviceFacts& facts, const EventChanges& changes,
                                        std::int64_t unix_of_ts, std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace headrace::timeline
