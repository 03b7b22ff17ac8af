// One request to a remote service, as a hook around the client's library reports it.
//
//     RemoteCall call(remote_owner(), "host:443 /shard-7", false, 0);
//     call.answered(200);   // the headers are here
//     call.ended(65536);    // the body is
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "headrace/profile/session.h"

namespace headrace::profile {

/// Owner of the calling thread's requests: the operator whose body it runs; for a thread that runs none
/// (a pool, an event loop) the operator that another thread of this process runs; else no operator. 0: nothing is
/// recorded. Never opens a session. A few hundred nanoseconds at most.
std::uint32_t remote_owner() noexcept;

/// From the request (construction) to the end of its answer. For any thread, one at a time; a fork's child does
/// nothing with its parent's. What is dropped before its end has ended then.
class RemoteCall {
 public:
  /// `owner`: as remote_owner() told in the thread that waits. `target`: names what is read (host, path,
  /// range); two bits of its hash are kept. `is_retry`: the same was refused just before, `backoff_ns` ago.
  /// `pause_ns`: how long the thread that waits had not asked for anything, where that is another thread; below 0: it
  /// is this one.
  RemoteCall(std::uint32_t owner, std::string_view target, bool is_retry, std::int64_t backoff_ns,
             std::int64_t pause_ns = -1) noexcept;
  ~RemoteCall() { ended(0); }
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;

  /// The answer began. Counts once.
  void answered(int status) noexcept;
  /// The answer is complete, or there is none. `bytes`: of the body. Counts once.
  void ended(std::int64_t bytes) noexcept;
  /// There is no answer, or it broke off after `bytes`: refused, reset, cut, timed out. It does not count as a
  /// success, whatever its headers said. Counts once.
  void failed(std::int64_t bytes) noexcept;

 private:
  std::shared_ptr<Session> open_session() noexcept;
  void begin_phase(Session& session, metrics::OpenTime metrics::RemoteFlights::Process::* phase) noexcept;
  /// Returns the mean number of the run's requests in that phase meanwhile.
  double end_phase(Session& session, metrics::OpenTime metrics::RemoteFlights::Process::* phase) noexcept;

  std::weak_ptr<Session> session_;
  metrics::RemoteRequest request_;
  std::uint64_t target_hash_;
  std::uint32_t owner_;
  int pid_ = 0;  ///< 0: nothing is recorded, or it has ended
  metrics::RemoteFlights::Process* flights_ = nullptr;
  double open_us_at_begin_ = 0;  ///< of the phase that it is in: all of the run's
  std::int64_t phase_began_us_ = 0;
};

}  // namespace headrace::profile
