#include "headrace/metrics/range_history.h"

#include <algorithm>

#include "headrace/metrics/history_thinning.h"

namespace headrace::metrics {
namespace {

using Packing = HistoryPacking;

struct Range {
  std::uint64_t began;
  std::uint64_t ended;
  std::uint64_t number;
  std::uint32_t value;

  static Range at(const HistoryWord* words) noexcept {
    const std::uint64_t when = words[0].load();
    const std::uint64_t what = words[1].load();
    const std::uint64_t ended = Packing::tick_of(when);
    return {ended - std::min(ended, Packing::ticks_of(what)), ended, Packing::number_of(what),
            Packing::value_of(when)};
  }
  void put(HistoryWord* words) const noexcept {
    words[0].store(Packing::word(ended, value));
    words[1].store(Packing::range(number, ended - std::min(ended, began)));
  }
};

/// Calls of GetNext are merged; of other ranges the longer one stays.
struct Ranges {
  static constexpr std::uint32_t kWords = 2;
  bool are_waits;

  std::uint32_t merge(HistoryWord* words, std::uint32_t count, std::uint64_t now_tick,
                      double c) const noexcept {
    std::uint32_t kept = 0;
    Range whole = Range::at(words);
    for (std::uint32_t i = kWords; i + 1 < count; i += kWords) {
      const Range next = Range::at(words + i);
      const std::uint64_t end = std::max(whole.ended, next.ended);
      const std::uint64_t began = std::min(whole.began, next.began);
      const std::uint64_t age = now_tick > end ? now_tick - end : 0;
      if (static_cast<double>(end - began) > HistoryThinning::span(age, c) || !combine(whole, next)) {
        whole.put(words + kept);
        kept += kWords;
        whole = next;
      }
    }
    whole.put(words + kept);
    return kept + kWords;
  }

  bool combine(Range& whole, const Range& next) const noexcept {
    if (!are_waits) {
      if (next.ended - next.began > whole.ended - whole.began) whole = next;
      return true;
    }
    const WaitMoment first = WaitMoment::unpack(whole.value);
    const WaitMoment second = WaitMoment::unpack(next.value);
    const auto waited = [](const Range& range, const WaitMoment& moment) {
      return moment.ended ? 0 : static_cast<double>(range.ended - range.began) * moment.share;
    };
    WaitMoment both;
    both.ready = first.ready && second.ready;
    both.merged = true;
    both.ended = second.ended && first.ended;
    const double sum = waited(whole, first) + waited(next, second);
    const auto span = static_cast<double>(next.ended - std::min(whole.began, next.ended));
    both.share =
        span > 0 ? static_cast<std::uint32_t>(std::min<double>(WaitMoment::kWhole, sum / span + 0.5)) : 0;
    if (first.ended) whole.number = next.number;
    whole.ended = std::max(whole.ended, next.ended);
    whole.value = both.pack();
    return true;
  }
};

}  // namespace

void RangeHistory::append(std::int64_t began, std::int64_t ended, std::uint64_t number,
                          std::uint32_t value) noexcept {
  HistoryTrack& track = *track_;
  const std::int64_t base = track.base_ns.load();
  const Range range{Packing::tick(began, base), Packing::tick(ended, base), number, value};
  const std::uint32_t capacity = track.capacity.load() / Ranges::kWords * Ranges::kWords;
  if (range.ended >= Packing::kLastTick || capacity < 8) return;
  std::uint32_t count = track.count.load(std::memory_order_relaxed);
  if (count + Ranges::kWords > capacity) {
    const bool are_waits = track.kind.load() == static_cast<std::uint32_t>(TrackKind::get_next);
    HistoryThinning::make_room(track, words_, ended, Ranges{are_waits});
    count = track.count.load(std::memory_order_relaxed);
  }
  range.put(words_ + count);
  track.kept_ns.store(ended);
  // Release: a reader that sees the count sees the words.
  track.count.store(count + Ranges::kWords, std::memory_order_release);
}

void RangeHistory::keep_waits(std::int64_t now) noexcept {
  HistoryTrack& track = *track_;
  const std::uint32_t calls = track.value.load();
  if (calls == 0) return;
  const std::int64_t began = track.run_ns.load();
  const std::int64_t ended = std::min(now, track.since_ns.load());
  WaitMoment moment;
  moment.ready = track.longest.load() != 0;
  moment.merged = calls > 1;
  if (moment.merged && ended > began) {
    const double share = static_cast<double>(track.weight.load()) / static_cast<double>(ended - began);
    moment.share = static_cast<std::uint32_t>(std::clamp(share, 0.0, 1.0) * WaitMoment::kWhole + 0.5);
  }
  append(began, ended, track.run_number.load(), moment.pack());
  track.value.store(0);
}

void RangeHistory::end_loop(std::int64_t now) noexcept {
  if (track_ == nullptr) return;
  keep_waits(now);
  append(now, now, 0, WaitMoment{false, false, true, 0}.pack());
}

void RangeHistory::range(std::int64_t began, std::int64_t ended, std::uint64_t number,
                         std::uint32_t value) noexcept {
  if (track_ == nullptr) return;
  const std::int64_t threshold = track_->threshold_ns.load();
  if (ended - began < threshold && ended - track_->kept_ns.load() < threshold) {
    track_->left_out.bump(1);
    return;
  }
  append(began, ended, number, value);
}

}  // namespace headrace::metrics
