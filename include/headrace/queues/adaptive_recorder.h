// The instrumentation of a BoundedQueue: exact while the queue is slow, sampled while it is fast.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "headrace/metrics/clock.h"
#include "headrace/queues/instrumented.h"
#include "headrace/queues/paced_probe.h"

namespace headrace::queues {

/// Records a queue and the threads that use it into the current run, under the queue's name.
///
/// |                         | up to about 1 M items/s | above                                              |
/// |-------------------------|-------------------------|----------------------------------------------------|
/// | puts, gets of the queue | every one               | every one (the kind's own counters)                |
/// | level over time         | at every transition     | read 1000 times a second by LevelSampler           |
/// | waits                   | every one, timed        | timed when they slept; spinning counts as no wait  |
/// | the threads' items      | every one, timed        | 1 in 32, weighted                                  |
///
/// Why: at 40 ns per item a time stamp on every one costs half as much again, and a consumer that reads
/// the producer's index costs twice as much again as the item itself.
class AdaptiveRecorder {
 public:
  /// `capacity`: of the queue, as the report should show it.
  AdaptiveRecorder(std::string name, std::int64_t capacity, PacedProbe::Limits limits = {}, int loader = -1)
      : probe_(std::make_shared<PacedProbe>(std::move(name), capacity, limits, loader)) {}

  template <class Kind>
  void attach(const Kind& kind) {
    probe_->attach({&kind, [](const void* queue) {
                      const auto& seen = *static_cast<const Kind*>(queue);
                      const std::uint64_t gets = seen.gets();  // first: puts can only have grown since
                      return PacedProbe::Counts{seen.puts(), gets, seen.capacity()};
                    }});
  }
  void detach() noexcept { probe_->detach(); }

  /// An item moved and no thread slept for it.
  void moved(Side side, std::uint64_t number, const char* loop_name) noexcept {
    if (!probe_->fast()) {
      probe_->exact(side, 0, loop_name);
    } else if (PacedProbe::is_sample(number) || probe_->sample_is_open()) {
      probe_->sample(side, PacedProbe::is_sample(number), loop_name);
    }
  }
  void moved_after(Side side, std::int64_t waited_ns, const char* loop_name) noexcept {
    probe_->exact(side, waited_ns, loop_name);
  }

  /// The clock, or 0 if a wait is not worth a clock read before it comes to sleeping.
  std::int64_t wait_began() const noexcept { return probe_->fast() ? 0 : metrics::Clock::now_ns(); }
  void waiting(Side side) noexcept { probe_->waiting(side); }
  void waited() noexcept { probe_->waited(); }
  /// Drained items do not count as gets, except while fast, where the kind's counters include them.
  void emptied() noexcept { probe_->emptied(); }

 private:
  std::shared_ptr<PacedProbe> probe_;  // shared with LevelSampler, which may look just now
};

}  // namespace headrace::queues
