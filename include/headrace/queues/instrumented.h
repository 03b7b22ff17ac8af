// The recording side of a bounded queue, as a piece that any queue can carry.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "headrace/profile/probes.h"

namespace headrace::queues {

/// On which side of a queue a call is.
enum class Side { put, get };

/// The caller's information about a put or get.
struct CallContext {
  bool counts = true;               ///< false for an end mark, or an item that its consumer puts back
  const char* loop_name = nullptr;  ///< name of the calling loop, for threads that run no annotated operator
};

/// Records nothing, costs nothing: for a BlockingQueue (the first two) and for a BoundedQueue (the rest; see
/// AdaptiveRecorder).
struct NotRecorded {
  template <class Context>
  void put(std::int64_t, std::int64_t, const Context&) noexcept {}
  template <class Context>
  void get(std::int64_t, std::int64_t, const Context&) noexcept {}
  void emptied() noexcept {}

  template <class Kind>
  void attach(const Kind&) noexcept {}
  void detach() noexcept {}
  void moved(Side, std::uint64_t, const char*) noexcept {}
  void moved_after(Side, std::int64_t, const char*) noexcept {}
  std::int64_t wait_began() noexcept { return 0; }
  void waiting(Side) noexcept {}
  void waited() noexcept {}
};

/// Records occupancy, puts, gets and waits into the current run. `put`, `get` and `emptied` are called with
/// the queue's lock held; `level` is the number of items after the change.
///
/// How to read the result: mostly empty, the operator to its right waits; mostly full, the one to its left
/// does.
class Instrumented {
 public:
  explicit Instrumented(std::shared_ptr<profile::QueueHandle> handle) : handle_(std::move(handle)) {}

  void put(std::int64_t level, std::int64_t waited_ns, const CallContext& transfer) noexcept {
    handle_->put(level, waited_ns, transfer.counts, transfer.loop_name);
  }
  void get(std::int64_t level, std::int64_t waited_ns, const CallContext& transfer) noexcept {
    handle_->get(level, waited_ns, transfer.counts, transfer.loop_name);
  }
  void emptied() noexcept { handle_->emptied(); }

  profile::QueueHandle& handle() noexcept { return *handle_; }

 private:
  std::shared_ptr<profile::QueueHandle> handle_;
};

}  // namespace headrace::queues
