// Records of a framework loader's worker process for the process that trains: its identity, and when it
// took, made, pickled and sent each of its last batches.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "headrace/metrics/delivery_ring.h"
#include "headrace/metrics/service_sequence.h"
#include "headrace/profile/session.h"

namespace headrace::profile {

/// One per worker process. `waiting`, `took`, `made` and `finish` belong to the thread that made it,
/// `sending` and `sent` to the thread that writes into the pipe. Never throws.
class DeliveryWriter {
 public:
  struct Identity {
    int loader = -1;
    std::uint32_t pass = 0;  ///< BatchTracker::Shape::pass
    int number = 0;
    int siblings = 1;
  };
  /// Enters the calling thread into the current session; null if nothing is recorded or the segment is
  /// full.
  static std::shared_ptr<DeliveryWriter> enter(const Identity& identity) noexcept;

  /// Asks for the number of its next batch: everything that it may make ahead is made (blocked-out), or its
  /// data has come to an end (idle).
  void waiting() noexcept;
  void took(std::int64_t batch) noexcept;
  /// The request was for no batch.
  void took_nothing() noexcept;
  /// The batch is made and handed to the thread that sends. `tensors`: in it, -1 if not counted.
  void made(std::int64_t batch, std::int64_t tensors) noexcept;
  /// Something that is not a batch is handed to that thread.
  void made_nothing() noexcept;
  void exhausted() noexcept { exhausted_ = true; }
  void finish() noexcept;

  void sending(std::int64_t message_bytes) noexcept;
  void sent() noexcept;

 private:
  struct Busy {
    metrics::OperatorCell* cell = nullptr;
    std::int64_t ns = 0;
  };
  static constexpr std::size_t kMaxOperators = 24;

  DeliveryWriter(std::shared_ptr<Session> session, metrics::DeliveryRing* ring)
      : session_(std::move(session)), ring_(ring) {}
  void note_busy() noexcept;
  void write_parts(metrics::Delivery& delivery) const noexcept;

  std::shared_ptr<Session> session_;
  metrics::DeliveryRing* ring_;
  metrics::Delivery* open_ = nullptr;
  bool exhausted_ = false;
  std::array<Busy, kMaxOperators> busy_{};
  std::size_t busy_count_ = 0;

  std::mutex mutex_;
  std::deque<metrics::Delivery*> outbox_;  ///< handed over and not yet sent; null: no batch
  metrics::BurstSampling sampling_{};      ///< of messages whose CPU time is read
  std::int64_t sender_cpu_ns_ = 0;         ///< of the sending thread, after its last message; -1: not read
  std::int64_t sent_ns_ = 0;
};

}  // namespace headrace::profile
