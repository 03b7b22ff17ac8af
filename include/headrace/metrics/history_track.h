// The history of one thing over time, for the timeline: a worker's states, a queue's level, a loop's waits.
//
//     word       63            18 17          0
//     state    | when it began   | what it was |     it lasts until the next one begins
//     range    | when it ended   | what it was |     followed by | number : 36 | how long : 28 |
//
// Times are ticks of 256 ns since `base_ns` (208 days fit). A track is memory of fixed size: what comes
// faster than `threshold_ns` is kept as one entry with a share ("decode, 80 % busy"), and when the memory is
// full neighbours are merged, the older the coarser (history_thinning.h). So recent minutes are there in
// detail, and a week costs no more memory than a minute.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// Kinds of tracks, and the meaning of `subject` and `number`.
enum class TrackKind : std::uint32_t {
  worker = 1,      ///< states; subject: 1 + loader, number: the worker's there. 0, -1: a thread of its own
  queue = 2,       ///< levels; subject: 1 + queue
  get_next = 3,    ///< ranges, GetNext waits; subject: 1 + loader
  batches = 4,     ///< ranges, the making of batches; subject: 1 + loader
  annotation = 5,  ///< ranges that the user named; a thread's
};

/// Life of a track. Claimed by compare-and-swap, so any process of the run may take one.
enum class TrackLife : std::uint32_t { free = 0, claimed = 1, live = 2, closed = 3 };

/// Written by one thread at a time; readers copy it meanwhile.
struct alignas(64) HistoryTrack {
  static constexpr std::int64_t kFinestNs = 20'000;
  static constexpr std::int64_t kCoarsestNs = 1'000'000'000;

  std::atomic<std::uint32_t> life;
  Relaxed<std::uint32_t> kind;
  Relaxed<std::uint32_t> subject;
  Relaxed<std::int32_t> number;
  Relaxed<std::int32_t> pid;  ///< of its writer; 0: whoever holds the queue's lock, or runs the loop
  Relaxed<std::int32_t> tid;
  Relaxed<std::uint64_t> process_start;
  Relaxed<std::uint32_t> first_word;
  Relaxed<std::uint32_t> capacity;    ///< words
  Relaxed<std::int64_t> base_ns;      ///< Clock
  Relaxed<std::uint64_t> left_out;    ///< ranges that were too short and too many to be kept
  Relaxed<std::uint64_t> run_number;  ///< batch of the first GetNext call of the run

  // States since run_ns, not an entry yet; the present one since since_ns.
  alignas(64) Relaxed<std::int64_t> run_ns;
  Relaxed<std::int64_t> since_ns;
  Relaxed<std::int64_t> due_ns;      ///< at which the run becomes an entry
  Relaxed<std::int64_t> weight;      ///< of the run up to since_ns: busy time; of GetNext ranges: waits
  Relaxed<std::int64_t> longest_ns;  ///< of the run's states, `longest` lasted longest
  Relaxed<std::uint32_t> longest;
  Relaxed<std::uint32_t> value;  ///< the present state
  Relaxed<std::int64_t> threshold_ns;
  Relaxed<std::int64_t> kept_ns;  ///< end of the newest range that was kept; of a queue, see QueueProbe

  alignas(64) std::atomic<std::uint32_t> generation;  ///< odd: entries are being merged
  std::atomic<std::uint32_t> count;                   ///< words in use; release: they are written
  Relaxed<std::int64_t> thinned_ns;                   ///< Clock of the last merging
  Relaxed<double> coarseness;
};

/// A word of the pool that all tracks take their memory from.
using HistoryWord = Relaxed<std::uint64_t>;

/// How entries are packed into words.
struct HistoryPacking {
  static constexpr int kTickShift = 8;
  static constexpr int kValueBits = 18;
  static constexpr std::uint32_t kValueMask = (1U << kValueBits) - 1;
  static constexpr std::uint64_t kLastTick = (std::uint64_t{1} << (64 - kValueBits)) - 1;
  static constexpr int kDurationBits = 28;

  static std::uint64_t tick(std::int64_t ns, std::int64_t base_ns) noexcept {
    if (ns <= base_ns) return 0;
    const std::uint64_t ticks =
        (static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(base_ns)) >> kTickShift;
    return ticks < kLastTick ? ticks : kLastTick;
  }
  static std::uint64_t word(std::uint64_t tick, std::uint32_t value) noexcept {
    return tick << kValueBits | (value & kValueMask);
  }
  static std::uint64_t tick_of(std::uint64_t word) noexcept { return word >> kValueBits; }
  static std::uint32_t value_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word) & kValueMask;
  }

  /// A number in few bits: exact while it fits into the mantissa, else its leading bits.
  template <int kMantissaBits, int kExponentBits>
  static std::uint32_t shorten(std::uint64_t number) noexcept {
    const int width = static_cast<int>(std::bit_width(number));
    int exponent = width > kMantissaBits ? width - kMantissaBits : 0;
    if (exponent >= 1 << kExponentBits) return (1U << (kMantissaBits + kExponentBits)) - 1;
    return static_cast<std::uint32_t>(exponent) << kMantissaBits |
           static_cast<std::uint32_t>(number >> exponent);
  }
  template <int kMantissaBits>
  static std::uint64_t widen(std::uint32_t shortened) noexcept {
    return std::uint64_t{shortened & ((1U << kMantissaBits) - 1)} << (shortened >> kMantissaBits);
  }

  static std::uint64_t range(std::uint64_t number, std::uint64_t ticks) noexcept {
    return number << kDurationBits | shorten<23, 5>(ticks);
  }
  static std::uint64_t number_of(std::uint64_t range) noexcept { return range >> kDurationBits; }
  static std::uint64_t ticks_of(std::uint64_t range) noexcept {
    return widen<23>(static_cast<std::uint32_t>(range) & ((1U << kDurationBits) - 1));
  }
};

/// The value of a worker's entry: what it was in (for a mixed run, what took longest) and how much of the
/// time it was busy.
struct WorkerMoment {
  static constexpr std::uint32_t kFirstOperator = 16;  ///< below: a WorkerState; from here on 16 + operator
  static constexpr std::uint32_t kWhole = 63;

  std::uint32_t code = 0;
  std::uint32_t busy = 0;  ///< of kWhole

  static bool is_operator(std::uint32_t code) noexcept { return code >= kFirstOperator; }
  std::uint32_t pack() const noexcept { return (code & 0xFFU) << 6 | (busy & kWhole); }
  static WorkerMoment unpack(std::uint32_t value) noexcept { return {value >> 6 & 0xFFU, value & kWhole}; }
};

/// The value of a queue's entry: its mean level in sixteenths.
struct LevelMoment {
  static constexpr int kFractionBits = 4;
  static std::uint32_t pack(std::uint64_t sixteenths) noexcept {
    return HistoryPacking::shorten<14, 4>(sixteenths);
  }
  static std::uint64_t unpack(std::uint32_t value) noexcept { return HistoryPacking::widen<14>(value); }
};

/// The value of a GetNext range.
struct WaitMoment {
  static constexpr std::uint32_t kWhole = 1023;

  bool ready = false;   ///< the batch was there
  bool merged = false;  ///< several calls; `share` of the range was waiting
  bool ended = false;   ///< no call: the loop ended here
  std::uint32_t share = kWhole;

  std::uint32_t pack() const noexcept {
    return (ready ? 1U : 0U) | (merged ? 2U : 0U) | (ended ? 4U : 0U) | (share & kWhole) << 3;
  }
  static WaitMoment unpack(std::uint32_t value) noexcept {
    return {(value & 1) != 0, (value & 2) != 0, (value & 4) != 0, value >> 3 & kWhole};
  }
};

}  // namespace headrace::metrics
