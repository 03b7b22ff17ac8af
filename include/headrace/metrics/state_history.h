// Writes the track of something that is always in one state: a worker, a queue's level.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/metrics/history_track.h"

namespace headrace::metrics {

/// `Moments` says what a mixed run of states is worth: WorkerMoments or LevelMoments. Not bound: does
/// nothing. One writer at a time; never throws, allocates or blocks (about 100 us once in a thousand entries,
/// when the track is thinned).
///
/// Costs a few stores into one cache line while states change faster than the track's threshold: what they
/// were is then one entry.
template <class Moments>
class StateHistory {
 public:
  StateHistory() = default;
  StateHistory(HistoryTrack* track, HistoryWord* words) noexcept : track_(track), words_(words) {}

  bool bound() const noexcept { return track_ != nullptr; }
  HistoryTrack* track() const noexcept { return track_; }

  /// It is in state `value` from `now` (Clock) on.
  void change(std::uint32_t value, std::int64_t now) noexcept
    requires requires { Moments::weight(value, now); }
  {
    if (track_ == nullptr) return;
    HistoryTrack& track = *track_;
    const std::uint32_t old = track.value.load();
    if (value == old) return;
    const std::int64_t since = track.since_ns.load();
    // A later report may begin before the last change.
    now = std::max(now, since);
    track.value.store(value);
    track.since_ns.store(now);
    if (now >= track.due_ns.load()) {
      keep(old, since, now);
      return;
    }
    note(old, now - since);
  }

  /// For callers that sum weights themselves: true when the run should become an entry.
  bool due(std::int64_t now) const noexcept { return track_ != nullptr && now >= track_->due_ns.load(); }
  std::int64_t run_ns() const noexcept { return track_->run_ns.load(); }
  /// The run weighed `weight` up to `since`, and from then on it was in `old` until `now`.
  void keep_run(std::uint32_t old, std::int64_t since, std::int64_t weight, std::int64_t now) noexcept;

  /// Begins to write, in state `value`: `now` is where the first run begins.
  void open(std::uint32_t value, std::int64_t now) noexcept;
  /// Renames the open state: it was `value` from its beginning.
  void rename(std::uint32_t value) noexcept {
    if (track_ != nullptr) track_->value.store(value);
  }
  /// Everything up to `now` becomes entries, and from then on it is in `value` until somebody opens it again.
  void close(std::uint32_t value, std::int64_t now) noexcept;

 private:
  // Inside and not as a constraint: clang before 16 also instantiates what is constrained away.
  void note(std::uint32_t old, std::int64_t lasted) noexcept {
    if constexpr (requires { Moments::weight(old, lasted); }) {
      HistoryTrack& track = *track_;
      track.weight.bump(Moments::weight(old, lasted));
      if (lasted > track.longest_ns.load()) {
        track.longest_ns.store(lasted);
        track.longest.store(old);
      }
    }
  }
  void keep(std::uint32_t old, std::int64_t since, std::int64_t now) noexcept;
  /// `another`: not the last entry's state that goes on, even if it is the same.
  void append(std::int64_t began, std::uint32_t moment, std::int64_t now, bool another = false) noexcept;
  void begin_run(std::int64_t now) noexcept;

  HistoryTrack* track_ = nullptr;
  HistoryWord* words_ = nullptr;
};

/// States of a worker: codes as in WorkerMoment.
struct WorkerMoments {
  static std::int64_t weight(std::uint32_t code, std::int64_t lasted) noexcept {
    return is_call(code) ? lasted : 0;
  }
  /// Two calls of one operator are two entries, however short the gap; a wait that woke up for nothing is one.
  static bool is_call(std::uint32_t code) noexcept { return WorkerMoment::is_operator(code); }
  static std::uint32_t pure(std::uint32_t code) noexcept;
  static std::uint32_t mixed(std::uint32_t longest, std::int64_t weight, std::int64_t lasted) noexcept;
  static std::uint32_t merged(std::uint32_t a, double a_lasted, std::uint32_t b, double b_lasted) noexcept;
};

/// Levels of a queue; a run weighs level x time.
struct LevelMoments {
  static bool is_call(std::uint32_t /*level*/) noexcept { return false; }
  static std::uint32_t pure(std::uint32_t level) noexcept;
  static std::uint32_t mixed(std::uint32_t longest, std::int64_t weight, std::int64_t lasted) noexcept;
  static std::uint32_t merged(std::uint32_t a, double a_lasted, std::uint32_t b, double b_lasted) noexcept;
};

using WorkerHistory = StateHistory<WorkerMoments>;
using LevelHistory = StateHistory<LevelMoments>;

extern template class StateHistory<WorkerMoments>;
extern template class StateHistory<LevelMoments>;

}  // namespace headrace::metrics
