// The instrumentation of a bounded queue, as a piece that any queue can carry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headrace/metrics/loop_clock.h"
#include "headrace/metrics/queue_cell.h"
#include "headrace/metrics/state_history.h"

namespace headrace::metrics {

/// Call `changed` after every put or get *while the queue's own lock is held* (or from its single sampler);
/// the rest follows. Not bound: does nothing in about 1 ns. Never throws, allocates or blocks.
///
///     probe.changed(items.size(), Clock::now_ns());
///     probe.put(waited_ns, now);
class QueueProbe {
 public:
  QueueProbe() = default;
  /// `history`: where its levels are kept for the timeline; not bound: nowhere.
  QueueProbe(QueueCell* cell, Relaxed<std::int64_t>* bins, const LoopClock* clock,
             const LevelHistory& history = {}) noexcept
      : cell_(cell),
        clock_(clock),
        history_(history),
        bins_{cell->capacity.load(), cell->levels_per_bin.load(), cell->bins.load()},
        time_at_(bins, bins_.bins) {}

  bool bound() const noexcept { return cell_ != nullptr; }

  /// The queue holds `level` items from `now` (Clock) on.
  void changed(std::int64_t level, std::int64_t now) noexcept {
    if (cell_ == nullptr) return;
    const LoopClock::Reading reading = clock_->read(now);
    if (history_.due(now)) keep_level(reading.loop_ns, now);
    const SeqlockWrite write(cell_->lock);
    if (reading.begun && cell_->begun.load() == 0) restart();
    if (reading.loop_ns >= cell_->grid.next_boundary_ns()) close_windows(reading.loop_ns);
    cell_->occupancy.set(reading.loop_ns, level, bins_, time_at_);
  }

  /// It was seen to hold `level` items at `now`, which may be a while ago, but never before the last call.
  void sampled(std::int64_t level, std::int64_t now) noexcept {
    changed(level, now);
    if (cell_ != nullptr && !clock_->read(now).paused) cell_->samples.bump(1);
  }

  /// An item was put after waiting `waited_ns` for room. `counts`: false for an end mark.
  void put(std::int64_t waited_ns, std::int64_t now, bool counts) noexcept {
    if (cell_ != nullptr && counts) record(cell_->puts, cell_->loop_puts, cell_->put_wait, waited_ns, now);
  }
  /// An item was taken after waiting `waited_ns` for it. `age_ns`: since its put; below 0: unknown.
  void get(std::int64_t waited_ns, std::int64_t now, bool counts, std::int64_t age_ns = -1) noexcept {
    if (cell_ == nullptr || !counts) return;
    const bool in_loop = record(cell_->gets, cell_->loop_gets, cell_->get_wait, waited_ns, now);
    if (in_loop && age_ns >= 0) cell_->item_age.add(age_ns);
  }

 private:
  static constexpr std::int64_t kMaxLevel = 1 << 24;

  /// The run's weight is the occupancy's sum of level x time since the run began (`kept_ns` of the track is the
  /// sum then), so that a change that is no entry costs one comparison.
  void keep_level(std::int64_t loop_ns, std::int64_t now) noexcept {
    const Occupancy& occupancy = cell_->occupancy;
    const std::int64_t level = std::clamp<std::int64_t>(occupancy.level.load(), 0, kMaxLevel);
    const std::int64_t lasted = std::max<std::int64_t>(0, loop_ns - occupancy.since_ns.load());
    const std::int64_t since = std::max(now - lasted, history_.run_ns());
    const std::int64_t sum = occupancy.level_ns.load();
    std::int64_t weight = sum - history_.track()->kept_ns.load();
    // Counting began anew meanwhile: what it was before is not known any more.
    if (weight < 0) weight = level * (since - history_.run_ns());
    history_.track()->kept_ns.store(sum + lasted * level);
    history_.keep_run(static_cast<std::uint32_t>(level), since, weight, now);
  }

  bool record(Relaxed<std::uint64_t>& all, Relaxed<std::int64_t>& in_loop, LatencyHistogram& wait,
              std::int64_t waited_ns, std::int64_t now) noexcept {
    all.bump(1);
    if (clock_->read(now).paused) return false;
    in_loop.bump(1);
    wait.add(waited_ns);
    return true;
  }

  void restart() noexcept {
    cell_->occupancy.reset(0, time_at_);
    cell_->grid.reset();
    cell_->sampled.store(0);
    cell_->samples.store(0);
    cell_->loop_puts.store(0);
    cell_->loop_gets.store(0);
    cell_->put_wait.reset();
    cell_->get_wait.reset();
    cell_->item_age.reset();
    cell_->begun.store(1);
  }

  void close_windows(std::int64_t loop_ns) noexcept {
    const Occupancy& now = cell_->occupancy;
    const std::int64_t level = now.level.load();
    cell_->grid.advance(
        loop_ns,
        [&](std::uint32_t index, std::int64_t boundary) {
          const std::int64_t lasted = boundary > now.since_ns.load() ? boundary - now.since_ns.load() : 0;
          const bool full = bins_.capacity > 0 && level >= bins_.capacity;
          const int window = static_cast<int>(index);
          cell_->windows.at(window, 0).store(cell_->loop_puts.load());
          cell_->windows.at(window, 1).store(cell_->loop_gets.load());
          cell_->windows.at(window, 2).store(now.level_ns.load() + lasted * level);
          cell_->windows.at(window, 3).store(now.empty_ns.load() + (level <= 0 ? lasted : 0));
          cell_->windows.at(window, 4).store(now.full_ns.load() + (full ? lasted : 0));
        },
        [&] { cell_->windows.halve(); });
  }

  QueueCell* cell_ = nullptr;
  const LoopClock* clock_ = nullptr;
  LevelHistory history_;
  OccupancyBins bins_;
  std::span<Relaxed<std::int64_t>> time_at_;
};

}  // namespace headrace::metrics
