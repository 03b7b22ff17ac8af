// State that one writer's packets refer to: earlier names, clocks, defaults.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trace/wire.h"

namespace headrace::trace::perfetto {

enum InternedField { kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29 };
enum ClockField { kClockId = 1, kClockTime = 2, kIncremental = 3, kUnit = 4 };
enum DefaultsField { kTrackEventDefaults = 11, kDefaultClock = 58 };
inline constexpr int kClocksOfSnapshot = 1;
inline constexpr int kTrackOfDefaults = 11;

inline std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}
inline std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

/// A clock of a writer.
struct Clock {
  bool is_incremental = false;
  std::int64_t unit_ns = 1;
  std::int64_t last_ns = 0;
  /// Shift to the time of the trace's own clock.
  std::int64_t offset_ns = 0;
};

using Clocks = std::unordered_map<std::uint64_t, Clock>;

/// `clock_snapshot` of a packet: the same moment on several clocks.
inline void set_clocks(std::string_view message, Clocks& clocks) {
  constexpr std::uint64_t kBootTime = 6;
  Clocks found;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() != kClocksOfSnapshot) continue;
    std::uint64_t id = 0;
    std::int64_t time = 0;
    Clock clock;
    Fields entry(fields.bytes());
    while (entry.next()) {
      if (entry.number() == kClockId) id = entry.bits();
      if (entry.number() == kClockTime) time = entry.integer();
      if (entry.number() == kIncremental) clock.is_incremental = entry.bits() != 0;
      if (entry.number() == kUnit && entry.integer() > 0) clock.unit_ns = entry.integer();
    }
    clock.last_ns = product(time, clock.unit_ns);
    found[id] = clock;
  }
  const auto reference = found.find(kBootTime);
  for (auto& [id, clock] : found) {
    if (reference != found.end() &&
        __builtin_sub_overflow(reference->second.last_ns, clock.last_ns, &clock.offset_ns))
      clock.offset_ns = 0;
    clocks[id] = clock;
  }
}

struct Sequence {
  using NamesById = std::unordered_map<std::uint64_t, std::string>;

  NamesById events;
  NamesById categories;
  NamesById annotations;
  NamesById texts;
  /// This writer's; those below 64 are the machine's.
  Clocks clocks;
  std::uint64_t default_clock = 0;  ///< 0: the trace's
  std::uint64_t default_track = 0;

  /// The writer's earlier packets are lost, or it begins anew.
  void forget() { *this = Sequence(); }
  /// `interned_data` of a packet.
  void learn(std::string_view message) {
    Fields fields(message);
    while (fields.next()) {
      NamesById* into = nullptr;
      if (fields.number() == kCategories) into = &categories;
      if (fields.number() == kEventNames) into = &events;
      if (fields.number() == kAnnotationNames) into = &annotations;
      if (fields.number() == kAnnotationTexts) into = &texts;
      if (into == nullptr) continue;
      std::uint64_t id = 0;
      std::string_view name;
      Fields entry(fields.bytes());
      while (entry.next()) {
        if (entry.number() == 1) id = entry.bits();
        if (entry.number() == 2) name = entry.bytes();
      }
      into->insert_or_assign(id, name);
    }
  }
  /// `trace_packet_defaults` of a packet.
  void set_defaults(std::string_view message) {
    default_clock = default_track = 0;
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kDefaultClock) default_clock = fields.bits();
      if (fields.number() != kTrackEventDefaults) continue;
      Fields event(fields.bytes());
      while (event.next()) {
        if (event.number() == kTrackOfDefaults) default_track = event.bits();
      }
    }
  }

  /// A packet's time; `clock` 0: the default one. `of_machine`: clocks of all writers.
  std::int64_t time_ns(std::int64_t stamp, std::uint64_t clock, const Clocks& of_machine) {
    const std::uint64_t id = clock != 0 ? clock : default_clock;
    if (const auto own = clocks.find(id); own != clocks.end()) {
      Clock& used = own->second;
      std::int64_t ns = product(stamp, used.unit_ns);
      if (used.is_incremental) ns = used.last_ns = sum(used.last_ns, ns);
      return sum(ns, used.offset_ns);
    }
    const auto machines = of_machine.find(id);
    return machines == of_machine.end()
               ? stamp
               : sum(product(stamp, machines->second.unit_ns), machines->second.offset_ns);
  }
};

}  // namespace headrace::trace::perfetto
