#include "headrace/metrics/history_store.h"

#include <algorithm>
#include <limits>

#include "headrace/metrics/page_backing.h"
#include "headrace/metrics/worker_cell.h"

namespace headrace::metrics {
namespace {

constexpr std::uint32_t kShare = 24;
constexpr std::uint32_t kMinWords = 64;

constexpr std::uint32_t life_of(TrackLife life) { return static_cast<std::uint32_t>(life); }

bool is_thread(const TrackOwner& owner) noexcept {
  return (owner.kind == TrackKind::worker && owner.number < 0) || owner.kind == TrackKind::annotation;
}

bool is_same(const HistoryTrack& track, const TrackOwner& owner) noexcept {
  if (track.kind.load() != static_cast<std::uint32_t>(owner.kind) || track.subject.load() != owner.subject ||
      track.number.load() != owner.number) {
    return false;
  }
  return !is_thread(owner) || track.pid.load() == owner.pid;
}

}  // namespace

bool HistoryStore::take(HistoryTrack& track, TrackLife from) noexcept {
  std::uint32_t expected = life_of(from);
  // Acquire pairs with the release of whoever left it: its words are settled.
  return track.life.compare_exchange_strong(expected, life_of(TrackLife::claimed), std::memory_order_acquire);
}

HistoryTrack* HistoryStore::find_own(const TrackOwner& owner) noexcept {
  const std::uint32_t used = std::min(tracks_used_->load(std::memory_order_relaxed), track_count_);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (is_same(tracks_[i], owner) && take(tracks_[i], TrackLife::closed)) return &tracks_[i];
  }
  return nullptr;
}

HistoryTrack* HistoryStore::find_live(const TrackOwner& owner) const noexcept {
  const std::uint32_t used = std::min(tracks_used_->load(std::memory_order_relaxed), track_count_);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (is_same(tracks_[i], owner) &&
        tracks_[i].life.load(std::memory_order_acquire) == life_of(TrackLife::live))
      return &tracks_[i];
  }
  return nullptr;
}

bool HistoryStore::allot(HistoryTrack& track) noexcept {
  std::uint32_t first = words_used_->load(std::memory_order_relaxed);
  for (;;) {
    if (first > word_count_ || word_count_ - first < kMinWords) return false;
    const std::uint32_t words = std::max(kMinWords, (word_count_ - first) / kShare / 8 * 8);
    if (!back_pages(words_ + first, words * sizeof(HistoryWord))) return false;
    if (!words_used_->compare_exchange_weak(first, first + words, std::memory_order_relaxed)) continue;
    track.first_word.store(first);
    track.capacity.store(words);
    return true;
  }
}

HistoryTrack* HistoryStore::make() noexcept {
  for (std::uint32_t i = 0; i < track_count_; ++i) {
    if (tracks_[i].life.load(std::memory_order_relaxed) != life_of(TrackLife::free)) continue;
    if (!take(tracks_[i], TrackLife::free)) continue;
    if (!allot(tracks_[i])) {
      tracks_[i].life.store(life_of(TrackLife::free), std::memory_order_release);
      return nullptr;
    }
    std::uint32_t seen = tracks_used_->load(std::memory_order_relaxed);
    while (seen < i + 1 && !tracks_used_->compare_exchange_weak(seen, i + 1, std::memory_order_relaxed)) {
    }
    return &tracks_[i];
  }
  return nullptr;
}

HistoryTrack* HistoryStore::take_oldest() noexcept {
  for (int attempt = 0; attempt < 4; ++attempt) {
    HistoryTrack* oldest = nullptr;
    std::int64_t ended = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t i = 0; i < track_count_; ++i) {
      if (tracks_[i].life.load(std::memory_order_relaxed) != life_of(TrackLife::closed)) continue;
      const std::int64_t last = std::max(tracks_[i].since_ns.load(), tracks_[i].kept_ns.load());
      if (last >= ended) continue;
      ended = last;
      oldest = &tracks_[i];
    }
    if (oldest == nullptr || take(*oldest, TrackLife::closed)) return oldest;
  }
  return nullptr;
}

HistoryTrack* HistoryStore::claim(const TrackOwner& owner, std::int64_t now) noexcept {
  if (!bound()) return nullptr;
  HistoryTrack* track = find_own(owner);
  const bool goes_on = track != nullptr;
  if (track == nullptr) track = make();
  if (track == nullptr) track = take_oldest();
  if (track == nullptr) return nullptr;
  track->pid.store(owner.pid);
  track->tid.store(owner.tid);
  track->process_start.store(owner.process_start);
  if (!goes_on) {
    track->count.store(0, std::memory_order_relaxed);
    track->generation.store(track->generation.load(std::memory_order_relaxed) / 2 * 2 + 2,
                            std::memory_order_release);
    track->kind.store(static_cast<std::uint32_t>(owner.kind));
    track->subject.store(owner.subject);
    track->number.store(owner.number);
    track->base_ns.store(now);
    track->left_out.store(0);
    track->run_ns.store(now);
    track->since_ns.store(now);
    track->weight.store(0);
    track->longest_ns.store(0);
    track->longest.store(0);
    track->value.store(0);
    track->threshold_ns.store(HistoryTrack::kFinestNs);
    track->kept_ns.store(0);
    track->thinned_ns.store(now);
    track->coarseness.store(0);
  } else if (track->generation.load(std::memory_order_relaxed) % 2 != 0) {
    // Its last writer was killed while it merged: what it left is read as it is, and no longer waited for.
    track->generation.store(track->generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Release: a reader that sees it live sees whose it is.
  track->life.store(life_of(TrackLife::live), std::memory_order_release);
  return track;
}

void HistoryStore::leave_for(HistoryTrack& track, std::int64_t last_alive) noexcept {
  if (!take(track, TrackLife::live)) return;
  if (track.generation.load(std::memory_order_relaxed) % 2 != 0) {
    track.generation.store(track.generation.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (track.kind.load() == static_cast<std::uint32_t>(TrackKind::worker))
    worker_history(&track).close(static_cast<std::uint32_t>(WorkerState::idle), last_alive);
  release(track);
}

void HistoryStore::disown(TrackKind kind, std::uint32_t subject) noexcept {
  for (std::uint32_t i = 0; i < track_count_; ++i) {
    HistoryTrack& track = tracks_[i];
    if (track.kind.load() != static_cast<std::uint32_t>(kind) || track.subject.load() != subject) continue;
    track.subject.store(kNobodys);
    std::uint32_t live = life_of(TrackLife::live);
    track.life.compare_exchange_strong(live, life_of(TrackLife::closed), std::memory_order_release);
  }
}

void HistoryStore::release(HistoryTrack& track) noexcept {
  track.life.store(life_of(TrackLife::closed), std::memory_order_release);
}

}  // namespace headrace::metrics
