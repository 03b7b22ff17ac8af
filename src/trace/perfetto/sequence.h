// What the packets of one writer refer to: names that were said before, clocks, defaults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace headrace::trace::perfetto {

/// A clock of a writer.
struct Clock {
  bool is_incremental = false;
  std::int64_t unit_ns = 1;
  std::int64_t last_ns = 0;
  /// What has to be added for the time of the trace's own clock.
  std::int64_t offset_ns = 0;
};

using Clocks = std::unordered_map<std::uint64_t, Clock>;

/// `clock_snapshot` of a packet: the same moment on several clocks.
void set_clocks(std::string_view message, Clocks& clocks);

struct Sequence {
  using NamesById = std::unordered_map<std::uint64_t, std::string>;

  NamesById events;
  NamesById categories;
  NamesById annotations;
  NamesById texts;
  /// Of this writer; those below 64 are the machine's.
  Clocks clocks;
  std::uint64_t default_clock = 0;  ///< 0: the trace's
  std::uint64_t default_track = 0;

  /// The writer's earlier packets are lost, or it begins anew.
  void forget();
  /// `interned_data` of a packet.
  void learn(std::string_view message);
  /// `trace_packet_defaults` of a packet.
  void set_defaults(std::string_view message);

  /// A packet's time; `clock` 0: the default one. `of_machine`: clocks of all writers.
  std::int64_t time_ns(std::int64_t stamp, std::uint64_t clock, const Clocks& of_machine);
};

}  // namespace headrace::trace::perfetto
