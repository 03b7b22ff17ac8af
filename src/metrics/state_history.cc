#include "headrace/metrics/state_history.h"

#include "headrace/metrics/history_thinning.h"

namespace headrace::metrics {
namespace {

using Packing = HistoryPacking;

template <class Moments>
struct Entries {
  static constexpr std::uint32_t kWords = 1;

  std::uint64_t end_tick;  ///< of the last entry

  std::uint32_t merge(HistoryWord* words, std::uint32_t count, std::uint64_t now_tick,
                      double c) const noexcept {
    std::uint32_t kept = 0;
    std::uint64_t whole = words[0].load();
    for (std::uint32_t i = 1; i < count; ++i) {
      const std::uint64_t next = words[i].load();
      const std::uint64_t began = Packing::tick_of(whole);
      const std::uint64_t middle = std::max(began, Packing::tick_of(next));
      const std::uint64_t end =
          std::max(middle, i + 1 < count ? Packing::tick_of(words[i + 1].load()) : end_tick);
      const std::uint64_t age = now_tick > end ? now_tick - end : 0;
      if (static_cast<double>(end - began) > HistoryThinning::span(age, c)) {
        words[kept++].store(whole);
        whole = next;
        continue;
      }
      const std::uint32_t merged =
          Moments::merged(Packing::value_of(whole), static_cast<double>(middle - began),
                          Packing::value_of(next), static_cast<double>(end - middle));
      whole = Packing::word(began, merged);
    }
    words[kept++].store(whole);
    return kept;
  }
};

}  // namespace

std::uint32_t WorkerMoments::pure(std::uint32_t code) noexcept {
  return WorkerMoment{code, WorkerMoment::is_operator(code) ? WorkerMoment::kWhole : 0}.pack();
}

std::uint32_t WorkerMoments::mixed(std::uint32_t longest, std::int64_t weight, std::int64_t lasted) noexcept {
  const double share = lasted > 0 ? static_cast<double>(weight) / static_cast<double>(lasted) : 0;
  const double busy = std::clamp(share, 0.0, 1.0) * WorkerMoment::kWhole + 0.5;
  return WorkerMoment{longest, static_cast<std::uint32_t>(busy)}.pack();
}

std::uint32_t WorkerMoments::merged(std::uint32_t a, double a_lasted, std::uint32_t b,
                                    double b_lasted) noexcept {
  const WorkerMoment first = WorkerMoment::unpack(a);
  const WorkerMoment second = WorkerMoment::unpack(b);
  const double lasted = a_lasted + b_lasted;
  const double busy = lasted > 0 ? (first.busy * a_lasted + second.busy * b_lasted) / lasted : first.busy;
  return WorkerMoment{a_lasted >= b_lasted ? first.code : second.code, static_cast<std::uint32_t>(busy + 0.5)}
      .pack();
}

std::uint32_t LevelMoments::pure(std::uint32_t level) noexcept {
  return LevelMoment::pack(std::uint64_t{level} << LevelMoment::kFractionBits);
}

std::uint32_t LevelMoments::mixed(std::uint32_t longest, std::int64_t weight, std::int64_t lasted) noexcept {
  if (lasted <= 0) return pure(longest);
  const double mean = static_cast<double>(weight) / static_cast<double>(lasted);
  return LevelMoment::pack(
      static_cast<std::uint64_t>(std::max(0.0, mean) * (1U << LevelMoment::kFractionBits) + 0.5));
}

std::uint32_t LevelMoments::merged(std::uint32_t a, double a_lasted, std::uint32_t b,
                                   double b_lasted) noexcept {
  const double lasted = a_lasted + b_lasted;
  if (lasted <= 0) return a;
  const double mean = (static_cast<double>(LevelMoment::unpack(a)) * a_lasted +
                       static_cast<double>(LevelMoment::unpack(b)) * b_lasted) /
                      lasted;
  return LevelMoment::pack(static_cast<std::uint64_t>(mean + 0.5));
}

template <class Moments>
void StateHistory<Moments>::begin_run(std::int64_t now) noexcept {
  track_->run_ns.store(now);
  track_->due_ns.store(now + track_->threshold_ns.load());
  track_->weight.store(0);
  track_->longest_ns.store(0);
}

template <class Moments>
void StateHistory<Moments>::open(std::uint32_t value, std::int64_t now) noexcept {
  if (track_ == nullptr) return;
  now = std::max(now, track_->since_ns.load());
  track_->value.store(value);
  track_->since_ns.store(now);
  begin_run(now);
}

template <class Moments>
void StateHistory<Moments>::append(std::int64_t began, std::uint32_t moment, std::int64_t now,
                                   bool another) noexcept {
  HistoryTrack& track = *track_;
  std::uint32_t count = track.count.load(std::memory_order_relaxed);
  const std::uint64_t tick = Packing::tick(began, track.base_ns.load());
  if (tick >= Packing::kLastTick || track.capacity.load() < 8) return;
  // The state that lasts already goes on.
  if (!another && count > 0 && Packing::value_of(words_[count - 1].load()) == moment) return;
  if (count >= track.capacity.load()) {
    HistoryThinning::make_room(track, words_, now, Entries<Moments>{tick});
    count = track.count.load(std::memory_order_relaxed);
  }
  words_[count].store(Packing::word(tick, moment));
  // Release: a reader that sees the count sees the word.
  track.count.store(count + 1, std::memory_order_release);
}

// A run of several states ends with `old`, which lasted from `since` to `now`.
template <class Moments>
void StateHistory<Moments>::keep(std::uint32_t old, std::int64_t since, std::int64_t now) noexcept {
  HistoryTrack& track = *track_;
  const std::int64_t run = track.run_ns.load();
  const std::int64_t threshold = track.threshold_ns.load();
  const std::int64_t before = since - run;
  if (now - since < threshold / 2) {
    if constexpr (requires { Moments::weight(old, now); }) {
      note(old, now - since);
    } else {
      track.weight.bump(static_cast<std::int64_t>(old) * (now - since));
    }
    append(run, Moments::mixed(track.longest.load(), track.weight.load(), now - run), now);
  } else if (before <= threshold / 8) {
    append(run, Moments::pure(old), now, before > 0 && Moments::is_call(old));
  } else {
    append(run, Moments::mixed(track.longest.load(), track.weight.load(), before), now);
    append(since, Moments::pure(old), now);
  }
  begin_run(now);
}

template <class Moments>
void StateHistory<Moments>::keep_run(std::uint32_t old, std::int64_t since, std::int64_t weight,
                                     std::int64_t now) noexcept {
  now = std::max(now, track_->since_ns.load());
  since = std::clamp(since, track_->run_ns.load(), now);
  track_->weight.store(weight);
  track_->since_ns.store(now);
  keep(old, since, now);
}

template <class Moments>
void StateHistory<Moments>::close(std::uint32_t value, std::int64_t now) noexcept {
  if (track_ == nullptr) return;
  const std::int64_t since = track_->since_ns.load();
  now = std::max(now, since);
  if (now > track_->run_ns.load()) keep(track_->value.load(), since, now);
  append(now, Moments::pure(value), now);
  open(value, now);
}

template class StateHistory<WorkerMoments>;
template class StateHistory<LevelMoments>;

}  // namespace headrace::metrics
