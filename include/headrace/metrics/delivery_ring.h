// The last batches that one worker process of a loader made: when it took, made, pickled and sent each of
// them.
//
//     taken ──▶ fetched ──▶ pickled ──▶ sent        Clock, ns; 0: not yet
//       └ worker's thread ┘└ feeder's thread ┘
//
// Written by the worker's process, read by the process that trains. From it follow, without a message between
// them: the level of the queues that both share, and what an awaited batch was doing at any moment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

struct Delivery {
  /// Operators of the worker that took most of the time between taken and fetched; `op` is 1 + its id.
  struct Part {
    Relaxed<std::uint32_t> op;
    Relaxed<std::uint32_t> unused;
    Relaxed<std::int64_t> ns;
  };
  static constexpr std::size_t kParts = 4;

  Relaxed<std::int64_t> batch;  ///< the loader's number of it
  Relaxed<std::int64_t> taken_ns;
  std::atomic<std::int64_t> fetched_ns;  ///< release: the parts are written
  std::atomic<std::int64_t> pickled_ns;  ///< release: bytes, CPU and tensors are written
  Relaxed<std::int64_t> sent_ns;
  Relaxed<std::int64_t> message_bytes;
  Relaxed<std::int64_t> pickle_cpu_ns;  ///< -1: not read for this batch
  Relaxed<std::int64_t> tensors;        ///< handed over as descriptors; -1: not counted for this batch
  std::array<Part, kParts> parts;
};

struct alignas(64) DeliveryRing {
  static constexpr std::uint64_t kLength = 32;
  std::atomic<std::uint64_t> taken;  ///< batches ever taken; release: the newest entry's start is written
  std::array<Delivery, kLength> entries;  ///< batch number k of this worker at k % kLength

  Delivery& at(std::uint64_t number) noexcept { return entries[number % kLength]; }
};

}  // namespace headrace::metrics
