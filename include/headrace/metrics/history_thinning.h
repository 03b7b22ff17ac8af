// How a track's memory is kept from running out: neighbours become one, the older the coarser.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headrace/metrics/history_track.h"

namespace headrace::metrics {

/// Makes room in a full track: at least a quarter of its words. Called by the track's writer.
///
/// An entry may grow to a span of c x age^1.5: half of the memory is the recent past as it was recorded, an
/// hour ago an entry spans seconds, a week ago hours. c is the smallest power of two that makes room; it is
/// looked for from the last one down, so it falls again when less happens.
///
/// `Entries`: kWords per entry; `merge(a, b, b_end)` -> true when `a` now stands for both. Readers see an odd
/// generation meanwhile. A writer that is killed inside leaves entries twice, which readers drop.
class HistoryThinning {
 public:
  template <class Entries>
  static void make_room(HistoryTrack& track, HistoryWord* words, std::int64_t now,
                        Entries&& entries) noexcept {
    track.generation.store(track.generation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    // Readers must see the odd number before any word that follows (as Seqlock).
    std::atomic_thread_fence(std::memory_order_release);
    constexpr double kFinest = 0x1p-34;
    constexpr double kEverything = 0x1p40;
    const std::uint32_t wanted = track.capacity.load() / 4 * 3;
    std::uint32_t left = track.count.load(std::memory_order_relaxed);
    double c = std::max(kFinest, track.coarseness.load() / 4);
    for (; left > wanted && c < kEverything; c *= 2)
      left = entries.merge(words, left, HistoryPacking::tick(now, track.base_ns.load()), c);
    // A clock that stands still gives everything the age 0: better half of it than none of what comes.
    if (left > wanted) left = wanted / 2 / Entries::kWords * Entries::kWords;
    track.coarseness.store(c);
    pace(track, now);
    track.count.store(left, std::memory_order_relaxed);
    // Pairs with the acquire of readers: an even number means that the words before it are complete.
    track.generation.store(track.generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// The span, in ticks, that an entry of this age may have.
  static double span(std::uint64_t age_ticks, double c) noexcept {
    const auto age = static_cast<double>(age_ticks);
    return c * age * std::sqrt(age);
  }

 private:
  /// A track that fills up within seconds keeps too much: the recent minutes would be thin.
  static void pace(HistoryTrack& track, std::int64_t now) noexcept {
    constexpr std::int64_t kSoonNs = 8'000'000'000;
    constexpr std::int64_t kLateNs = 8 * kSoonNs;
    const std::int64_t lasted = now - track.thinned_ns.load();
    const std::int64_t threshold = track.threshold_ns.load();
    const std::int64_t paced = lasted < kSoonNs / 4 ? threshold * 4
                               : lasted < kSoonNs   ? threshold * 2
                               : lasted > kLateNs   ? threshold / 2
                                                    : threshold;
    track.threshold_ns.store(std::clamp(paced, HistoryTrack::kFinestNs, HistoryTrack::kCoarsestNs));
    track.thinned_ns.store(now);
  }
};

}  // namespace headrace::metrics
