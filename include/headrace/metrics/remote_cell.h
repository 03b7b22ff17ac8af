// Costs of requests to a remote service: answers, refusals, bytes, and how they depend on each other.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/latency_histogram.h"
#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// How the service answered. `unavailable` (503) and `too_many` (429) are refusals because of load.
enum class RemoteAnswer : std::uint32_t {
  ok,             ///< 1xx and 2xx
  redirect,       ///< 3xx
  client_error,   ///< 4xx, 429 left out
  too_many,       ///< 429
  server_error,   ///< 5xx, 503 left out
  unavailable,    ///< 503
  no_connection,  ///< it broke, or there was none
  count
};
inline constexpr std::size_t kRemoteAnswers = static_cast<std::size_t>(RemoteAnswer::count);

/// `status` 0: there was no answer.
constexpr RemoteAnswer answer_of(int status) noexcept {
  if (status <= 0) return RemoteAnswer::no_connection;
  if (status == 429) return RemoteAnswer::too_many;
  if (status == 503) return RemoteAnswer::unavailable;
  if (status < 300) return RemoteAnswer::ok;
  if (status < 400) return RemoteAnswer::redirect;
  return status < 500 ? RemoteAnswer::client_error : RemoteAnswer::server_error;
}

/// Classes of the number of requests in flight at once, over all processes of the run: each up to 4, then wider.
struct RemoteLoadClasses {
  static constexpr std::array<int, 12> kMost = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 1 << 20};
  static constexpr std::size_t kCount = kMost.size();
  static constexpr std::size_t index(double in_flight) noexcept {
    std::size_t which = 0;
    while (which + 1 < kCount && in_flight >= kMost[which] + 0.5) ++which;
    return which;
  }
};

/// One request, from its beginning to the end of its answer. Times are Clock::now_ns().
struct RemoteRequest {
  std::int64_t began_ns = 0;
  std::int64_t first_byte_ns = 0;  ///< 0: no answer began
  std::int64_t ended_ns = 0;
  std::int64_t bytes = 0;  ///< of the body
  int status = 0;          ///< 0: no answer
  double waiting = 1;  ///< mean number of the run's requests without a first byte meanwhile, itself included
  double transferring =
      1;  ///< mean number of the run's requests whose body arrived meanwhile, itself included
  bool is_retry = false;
  bool is_repeated = false;     ///< the run has read the same before
  std::int64_t backoff_ns = 0;  ///< between the refused attempt and this one
  std::int64_t pause_ns = -1;   ///< since its thread's last request ended; below 0: unknown
};

/// Answers of one class of load. Mean time to the first byte by `waiting` says whether the service computes more
/// slowly with more requests, mean time per byte by `transferring` whether they share a full link.
struct RemoteLoadCell {
  Relaxed<std::int64_t> answers;
  Relaxed<std::int64_t> waiting_milli;  ///< sum over these answers, in thousandths
  Relaxed<std::int64_t> first_byte_ns;
  Relaxed<std::int64_t> transfers;
  Relaxed<std::int64_t> transferring_milli;
  Relaxed<std::int64_t> bytes;
  Relaxed<std::int64_t> transfer_ns;
};

/// Sums of a straight line through points (x, y), neither of them negative, whose scatter tells how sure its slope is.
struct TrendCell {
  Relaxed<std::int64_t> points;
  Relaxed<double> x, y, xx, xy, yy;

  void add(double to_x, double to_y) noexcept {
    points.add(1);
    x.add(to_x);
    y.add(to_y);
    xx.add(to_x * to_x);
    xy.add(to_x * to_y);
    yy.add(to_y * to_y);
  }
};

/// Requests of one operator. Any thread of any process of the run adds to it (fetch_add, no lock), because the
/// thread that does a request is often not the one that waits for it.
struct alignas(64) RemoteCell {
  std::atomic<std::uint32_t> owner;  ///< 0: free; 1 + operator; kOfNoOperator
  static constexpr std::uint32_t kOfNoOperator = ~std::uint32_t{0};

  Relaxed<std::int64_t> bytes;
  Relaxed<std::int64_t> retries;
  Relaxed<std::int64_t> backoff_ns;
  Relaxed<std::int64_t> first_byte_ns;  ///< of answers, refused ones left out
  Relaxed<std::int64_t> transfer_ns;    ///< of the same
  Relaxed<std::int64_t> refused_ns;     ///< in flight, of refused requests and those without an answer
  Relaxed<std::int64_t> first_reads;    ///< answered reads of what the run had not read before
  Relaxed<std::int64_t> first_read_ns;
  Relaxed<std::int64_t> repeated_reads;
  Relaxed<std::int64_t> repeated_read_ns;
  std::array<Relaxed<std::int64_t>, kRemoteAnswers> answers;
  LatencyHistogram latency;  ///< from the request to the end of its answer; answered ones
  std::array<RemoteLoadCell, RemoteLoadClasses::kCount> load;
  TrendCell first_byte_by_load;  ///< log(1 + ns) over log(requests that wait)
  TrendCell transfer_by_load;    ///< log(1 + ps a byte) over log(bodies that arrive)
  TrendCell answer_by_pause;     ///< s from request to answer over s that the reader paused before

  /// `counts`: false in start-up, of which only the dependence on load is kept.
  void add(const RemoteRequest& request, bool counts) noexcept;
};

/// How many requests are open, and for how long they have been: one word, so that both change at once.
///
///     63        48 47                                0
///     +-----------+-----------------------------------+
///     |   open    | sum of begins - sum of ends, us   |
///     +-----------+-----------------------------------+
///
/// The sum of all times open so far, up to `now`, is open x now - that sum. Holds for 50 days of 32 requests at once.
class OpenTime {
 public:
  struct Reading {
    double open = 0;
    double open_us = 0;  ///< of all that were open, up to `now_us`
  };
  void begin(std::int64_t now_us) noexcept { word_.add(kOne + now_us); }
  void end(std::int64_t now_us) noexcept { word_.add(-(kOne + now_us)); }
  void reset() noexcept { word_.store(0); }
  Reading read(std::int64_t now_us) const noexcept {
    const std::int64_t word = word_.load();
    const std::int64_t open = (word + kOne / 2) >> kShift;
    return {static_cast<double>(open), static_cast<double>(open * now_us - (word - open * kOne))};
  }

 private:
  static constexpr int kShift = 48;
  static constexpr std::int64_t kOne = std::int64_t{1} << kShift;
  Relaxed<std::int64_t> word_;
};

/// The requests that the run has in flight: those of each process apart, so that a killed one leaves nothing behind.
struct RemoteFlights {
  static constexpr std::uint32_t kProcesses = 64;
  struct Process {
    std::atomic<std::int32_t> pid;  ///< 0: free
    std::int32_t unused;
    OpenTime waiting;       ///< for the first byte
    OpenTime transferring;  ///< the body
  };
  std::array<Process, kProcesses> processes;
};

/// Objects that the run has read: two bits of a hash each. It forgets nothing, so in runs over more than some ten
/// thousand objects first reads may count as repeated ones.
struct SeenObjects {
  static constexpr std::size_t kWords = 2048;
  std::array<Relaxed<std::uint64_t>, kWords> words;

  /// Whether `hash` was there before; from now on it is.
  bool mark(std::uint64_t hash) noexcept {
    bool seen = true;
    for (const int shift : {0, 32}) {
      const std::uint64_t bit = (hash >> shift) % (kWords * 64);
      const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
      seen &= (words[bit / 64].load() & mask) != 0;
      words[bit / 64].set_bits(mask);
    }
    return seen;
  }
};

/// State shared by all requests; readers of a segment do not need it.
struct alignas(64) RemoteTraffic {
  RemoteFlights flights;
  SeenObjects seen;
};

}  // namespace headrace::metrics
