// Admits puts until a queue is closed, and counts those in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace headrace::queues {

/// For kinds whose own index cannot be closed. A put is counted before it looks whether the queue is closed;
/// so once it is, whoever compares the count with the items taken knows whether one may still arrive.
/// Thread-safe.
class PutGate {
 public:
  /// The put's number, or nothing if the queue is closed.
  std::optional<std::uint64_t> enter() noexcept {
    // Sequentially consistent, as are close() and the reads below: either this put sees the closing, or who
    // sees the closing sees this put counted.
    const std::uint64_t number = entered_.fetch_add(1, std::memory_order_seq_cst);
    if (!closed_.load(std::memory_order_seq_cst)) return number;
    back_out();
    return std::nullopt;
  }
  /// The put did not come about.
  void back_out() noexcept { entered_.fetch_sub(1, std::memory_order_seq_cst); }

  void close() noexcept { closed_.store(true, std::memory_order_seq_cst); }
  bool closed() const noexcept { return closed_.load(std::memory_order_seq_cst); }
  /// Puts that are done or on their way; may be too high for a moment, never too low.
  std::uint64_t entered() const noexcept { return entered_.load(std::memory_order_seq_cst); }

 private:
  alignas(64) std::atomic<std::uint64_t> entered_{0};
  alignas(64) std::atomic<bool> closed_{false};
};

}  // namespace headrace::queues
