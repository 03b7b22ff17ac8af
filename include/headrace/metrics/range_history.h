// Writes tracks of ranges with a beginning and an end: GetNext waits, the making of batches, annotations.
#pragma once

#include <cstdint>

#include "headrace/metrics/history_track.h"

namespace headrace::metrics {

/// Not bound: does nothing. One writer at a time; never throws, allocates or blocks. Times are Clock.
class RangeHistory {
 public:
  RangeHistory() = default;
  RangeHistory(HistoryTrack* track, HistoryWord* words) noexcept : track_(track), words_(words) {}

  bool bound() const noexcept { return track_ != nullptr; }
  HistoryTrack* track() const noexcept { return track_; }

  /// A GetNext that brought batch `number`. Calls that follow each other faster than the track's threshold
  /// become one range with the share of it that was waiting.
  void wait(std::int64_t began, std::int64_t ended, std::uint64_t number, bool ready) noexcept {
    if (track_ == nullptr) return;
    HistoryTrack& track = *track_;
    const std::int64_t lasted = ended - began;
    const std::int64_t threshold = track.threshold_ns.load();
    if (track.value.load() > 0 && lasted >= threshold / 2) keep_waits(began);
    if (track.value.load() == 0) {
      track.run_ns.store(began);
      track.run_number.store(number);
      track.weight.store(0);
      track.longest.store(1);
    }
    track.weight.bump(lasted);
    track.value.bump(1);
    track.longest.store(track.longest.load() & (ready ? 1U : 0U));
    track.since_ns.store(ended);
    if (ended - track.kept_ns.load() >= threshold) keep_waits(ended);
  }
  /// The loop is over.
  void end_loop(std::int64_t now) noexcept;

  /// A range of its own. Short ones that come faster than the track's threshold are left out and counted.
  void range(std::int64_t began, std::int64_t ended, std::uint64_t number, std::uint32_t value) noexcept;

 private:
  void keep_waits(std::int64_t now) noexcept;
  void append(std::int64_t began, std::int64_t ended, std::uint64_t number, std::uint32_t value) noexcept;

  HistoryTrack* track_ = nullptr;
  HistoryWord* words_ = nullptr;
};

}  // namespace headrace::metrics
