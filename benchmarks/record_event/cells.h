// The cells of one worker, one operator and one queue in shared memory, as a run has them.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "headrace/metrics/history_store.h"
#include "headrace/metrics/loop_clock.h"
#include "headrace/metrics/operator_cell.h"
#include "headrace/metrics/queue_probe.h"
#include "headrace/metrics/worker_probe.h"

namespace headrace::bench {

struct Cells {
  metrics::LoopClock clock;
  metrics::WorkerCell worker;
  metrics::OperatorCell op;
  metrics::QueueCell queue;
  metrics::Relaxed<std::int64_t> bins[65];
  static constexpr std::uint32_t kWords = 16 * 1024;
  metrics::HistoryTrack tracks[2];
  metrics::HistoryWord words[kWords];
  std::atomic<std::uint32_t> tracks_used;
  std::atomic<std::uint32_t> words_used;

  metrics::HistoryStore history() { return {tracks, 2, &tracks_used, words, kWords, &words_used}; }
  /// The track of the queue's levels.
  metrics::LevelHistory levels() {
    const std::int64_t now = metrics::Clock::now_ns();
    metrics::LevelHistory history =
        this->history().level_history(this->history().claim({.kind = metrics::TrackKind::queue}, now));
    history.open(0, now);
    return history;
  }

  /// A loop that has begun; a queue of capacity 64.
  static Cells& make() {
    void* memory = mmap(nullptr, sizeof(Cells), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    auto& cells = *static_cast<Cells*>(memory);
    metrics::Clock::calibrate();
    cells.clock.open(metrics::Clock::now_ns());
    cells.clock.resume(metrics::Clock::now_ns());
    cells.queue.capacity.store(64);
    cells.queue.levels_per_bin.store(1);
    cells.queue.bins.store(65);
    return cells;
  }
};

}  // namespace headrace::bench
