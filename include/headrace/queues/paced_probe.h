// Records one lock-free queue, as closely as its pace allows.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "headrace/profile/probes.h"
#include "headrace/queues/instrumented.h"

namespace headrace::queues {

/// The part of an AdaptiveRecorder that its queue shares with LevelSampler. A queue begins slow (every item
/// is recorded, under a lock), becomes fast when its items come faster than `Limits::fast_items_per_s`, and
/// slow again when the sampler sees fewer than `slow_items_per_s`.
///
/// The queue's cell in the run has one writer at a time, who holds `mutex_`: while slow whoever moved an
/// item, while fast the sampler and threads that slept.
///
/// Thread-safe. `exact`, `sample`: for the thread that moved the item. Counts are exact while nobody is in a
/// call; when the pace changes they may be off by the calls in flight.
class PacedProbe : public std::enable_shared_from_this<PacedProbe> {
 public:
  struct Counts {
    std::uint64_t puts = 0;
    std::uint64_t gets = 0;
    std::int64_t capacity = 1;
  };
  struct QueueCounters {
    const void* queue = nullptr;
    Counts (*read)(const void* queue) = nullptr;
  };
  /// Recording every item halves the rate of a queue of 1 M items/s; hence half of that is the limit as it is
  /// seen while slow. The rate while fast is the true one; it has to fall well below to go back.
  struct Limits {
    std::int64_t fast_items_per_s = 500'000;
    std::int64_t slow_items_per_s = 250'000;
  };

  /// `loader`: the pipeline that the queue belongs to, as a loader's record; -1: it is the user's own.
  PacedProbe(std::string name, std::int64_t capacity, Limits limits, int loader = -1);

  void attach(QueueCounters source);
  /// The queue goes: what its counters say and the run does not is recorded now.
  void detach() noexcept;

  bool fast() const noexcept { return fast_.load(std::memory_order_relaxed); }
  /// One number in 32, in no rhythm that threads taking turns could fall into (Fibonacci hashing).
  static bool is_sample(std::uint64_t number) noexcept {
    return number * 0x9E3779B97F4A7C15ULL < (std::uint64_t{1} << 59);
  }
  /// This thread's last item here was a sample; this one shows how long its service took.
  bool sample_is_open() const noexcept { return open_sample_ == this; }

  /// An item moved, after `waited_ns`.
  void exact(Side side, std::int64_t waited_ns, const char* loop_name) noexcept;
  /// An item of a fast queue that is a sample (`weighs`), or the one after it: into the thread's own cells
  /// only, which no other core has.
  void sample(Side side, bool weighs, const char* loop_name) noexcept;

  void waiting(Side side) noexcept;
  void waited() noexcept;
  void emptied() noexcept;

  /// The sampler's reading of a fast queue. False when it is no longer fast.
  bool look(std::int64_t now) noexcept;

 private:
  static constexpr std::uint64_t kSampleWeight = 32;
  static constexpr std::uint64_t kItemsPerRate = 256;  ///< a rate while slow is that of so many puts
  static constexpr std::int64_t kRateNs = 16'000'000;  ///< a rate while fast is that of so long

  std::int64_t recorded_level(const Counts& counts) const noexcept;
  void tell(Side side, std::int64_t level, std::int64_t waited_ns, bool counts,
            const char* loop_name) noexcept;
  bool known_to(profile::ThreadContext& context, Side side, const char* loop_name) const noexcept;
  void sample_loop(profile::ThreadContext& context, metrics::OperatorCell& loop, bool weighs) noexcept;
  void judge_pace(profile::ThreadContext& context) noexcept;
  void publish(profile::Session& session, std::int64_t now) noexcept;
  void go_slow(std::int64_t now) noexcept;

  // The last sample of this thread whose service time is still to come.
  [[gnu::tls_model("initial-exec")]] static inline thread_local const PacedProbe* open_sample_ = nullptr;

  const std::int64_t recorded_capacity_;
  const Limits limits_;
  const int pid_;
  profile::QueueHandle handle_;
  std::atomic<bool> fast_{false};
  // The run in which it became fast; read by samples.
  std::atomic<std::uint64_t> session_uid_{0};
  std::atomic<std::uint32_t> id_{0};

  // From here on under the lock.
  std::mutex mutex_;
  QueueCounters source_;
  std::weak_ptr<profile::Session> session_;
  bool watched_ = false;  ///< the sampler has it on its list
  Counts recorded_;       ///< what the run has been told of, since the queue became fast
  std::uint64_t rate_puts_ = 0;
  std::int64_t rate_since_ns_ = 0;
};

}  // namespace headrace::queues
