// Run that this process records into now.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/profile/session.h"

namespace headrace::profile {

/// The process's current session: the innermost `with session`, else the one whose wrapped loop began last,
/// else one opened at first use. Everything recorded goes to the current one; threads follow at their next
/// event.
class CurrentSession {
 public:
  /// Changes whenever the current session does, or the process forks: what threads have cached is stale then.
  static std::uint64_t generation() noexcept { return generation_.load(std::memory_order_acquire); }

  /// The current session, opening one (without a folder yet) at first use. Null while recording is disabled.
  static std::shared_ptr<Session> get() noexcept;
  /// The current session if there is one.
  static std::shared_ptr<Session> peek() noexcept;

  static void set(std::shared_ptr<Session> session) noexcept;
  /// A `with` block: stays current whatever loops begin meanwhile.
  static void push(std::shared_ptr<Session> session);
  static void pop(const Session& session) noexcept;

  /// The session for a wrapped object that names no run, or names `run`: the current one where that fits, the
  /// implicit one (given the folder) where nothing was wrapped in it yet, else a new one, made current.
  /// `unnamed`: see SessionOptions.
  static std::shared_ptr<Session> for_run(const std::string& run, int rank, bool unnamed = false);

  static void disable() noexcept;
  static bool enabled() noexcept { return enabled_.load(std::memory_order_relaxed); }

  /// At the end of the process. Returns the messages of its sessions.
  static std::vector<std::string> close_all() noexcept;

 private:
  static std::atomic<std::uint64_t> generation_;
  static std::atomic<bool> enabled_;
};

}  // namespace headrace::profile
