// Completion of a copy, for the receiver of its batch.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace headrace::transport {

/// A copy that a device carries out by itself. Implemented by devices; thread-safe.
class PendingCopy {
 public:
  virtual ~PendingCopy() = default;
  /// Both raise DeviceError if the copy failed.
  virtual bool done() = 0;
  virtual void wait() = 0;
  /// How long the copy took; below 0 while it runs or if the device cannot measure it.
  virtual std::int64_t copy_ns() = 0;
};

/// A handle to one copy: cheap to pass on, the same for every holder. Thread-safe.
///
///     queue.put({std::move(block), copied.completion});   // the copy runs meanwhile
///     ... item.completion.wait();                          // the consumer, before it reads
class Completion {
 public:
  /// A copy that was complete when `copy` returned, after `copy_ns`.
  Completion() = default;
  explicit Completion(std::int64_t copy_ns) noexcept : copy_ns_(copy_ns) {}
  explicit Completion(std::shared_ptr<PendingCopy> pending) noexcept : pending_(std::move(pending)) {}

  /// Never blocks. Raises DeviceError if the copy failed.
  bool done() const { return pending_ == nullptr || pending_->done(); }
  /// Returns when the batch can be read. Raises DeviceError if the copy failed.
  void wait() const {
    if (pending_ != nullptr) pending_->wait();
  }
  /// How long the copy itself took, without what it queued behind; below 0 while it is not known.
  std::int64_t copy_ns() const { return pending_ == nullptr ? copy_ns_ : pending_->copy_ns(); }

  const std::shared_ptr<PendingCopy>& pending() const noexcept { return pending_; }

 private:
  std::shared_ptr<PendingCopy> pending_;
  std::int64_t copy_ns_ = 0;
};

}  // namespace headrace::transport
