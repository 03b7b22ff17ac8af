// Gives out the tracks of a segment and the memory behind them.
#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/metrics/history_track.h"
#include "headrace/metrics/range_history.h"
#include "headrace/metrics/state_history.h"

namespace headrace::metrics {

/// Whose track is wanted; see TrackKind.
struct TrackOwner {
  TrackKind kind = TrackKind::worker;
  std::uint32_t subject = 0;
  std::int32_t number = -1;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint64_t process_start = 0;
};

/// A view of the tracks and words in a segment: a value, cheap to copy. Thread-safe, between processes too.
///
/// A track that its writer has left goes on with the next writer of the same thing: the worker processes that
/// an epoch starts anew have one history. Memory is given out by need: each new track gets a 24th of what is
/// left, so the first dozens have minutes of detail and a hundred more still have something. When there is
/// none left, the track that ended longest ago is given up.
class HistoryStore {
 public:
  HistoryStore() = default;
  HistoryStore(HistoryTrack* tracks, std::uint32_t track_count, std::atomic<std::uint32_t>* tracks_used,
               HistoryWord* words, std::uint32_t word_count, std::atomic<std::uint32_t>* words_used) noexcept
      : tracks_(tracks),
        track_count_(track_count),
        tracks_used_(tracks_used),
        words_(words),
        word_count_(word_count),
        words_used_(words_used) {}

  /// Subject of a track whose loader's record went to another one.
  static constexpr std::uint32_t kNobodys = ~std::uint32_t{0};

  bool bound() const noexcept { return tracks_ != nullptr; }

  /// The owner's track, live; null if none is available. Takes microseconds.
  HistoryTrack* claim(const TrackOwner& owner, std::int64_t now) noexcept;
  /// The live track of an owner that has one at a time, and writes it now and then (a loader); null: none.
  HistoryTrack* find_live(const TrackOwner& owner) const noexcept;
  /// Closes the track of a writer that is gone, which was last seen alive at `last_alive`.
  void leave_for(HistoryTrack& track, std::int64_t last_alive) noexcept;
  /// The entries of this subject no longer have an owner.
  void disown(TrackKind kind, std::uint32_t subject) noexcept;
  /// Its writer stops; the entries stay until the memory is needed.
  static void release(HistoryTrack& track) noexcept;

  /// Number of a track in the table.
  std::uint32_t index(const HistoryTrack& track) const noexcept {
    return static_cast<std::uint32_t>(&track - tracks_);
  }
  HistoryTrack* at(std::uint32_t index) const noexcept {
    return index < track_count_ ? &tracks_[index] : nullptr;
  }
  HistoryWord* words_of(const HistoryTrack& track) const noexcept { return words_ + track.first_word.load(); }
  WorkerHistory worker_history(HistoryTrack* track) const noexcept {
    return track == nullptr ? WorkerHistory() : WorkerHistory(track, words_of(*track));
  }
  LevelHistory level_history(HistoryTrack* track) const noexcept {
    return track == nullptr ? LevelHistory() : LevelHistory(track, words_of(*track));
  }
  RangeHistory range_history(HistoryTrack* track) const noexcept {
    return track == nullptr ? RangeHistory() : RangeHistory(track, words_of(*track));
  }

 private:
  bool take(HistoryTrack& track, TrackLife from) noexcept;
  HistoryTrack* find_own(const TrackOwner& owner) noexcept;
  HistoryTrack* make() noexcept;
  HistoryTrack* take_oldest() noexcept;
  bool allot(HistoryTrack& track) noexcept;

  HistoryTrack* tracks_ = nullptr;
  std::uint32_t track_count_ = 0;
  std::atomic<std::uint32_t>* tracks_used_ = nullptr;
  HistoryWord* words_ = nullptr;
  std::uint32_t word_count_ = 0;
  std::atomic<std::uint32_t>* words_used_ = nullptr;
};

}  // namespace headrace::metrics
