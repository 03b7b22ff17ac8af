// The process's one background thread: anchors, liveness, host figures, copies into the run folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/profile/session.h"

namespace headrace::profile {

/// Serves every session that this process owns. Ticks about every 100 ms while a loop runs, four times a
/// second otherwise. Costs about 0.1 % of a core on a quiet machine, and a few tenths of a percent while it
/// looks at threads that may wait for the interpreter lock. Started at the first session, in the owning
/// process only: a forked child has none.
class Sampler {
 public:
  static Sampler& instance();

  /// A session's message if `add` returns false.
  static constexpr const char* kNoThread =
      "no thread could be started: figures of CPU and memory are missing in the report";
  bool add(const std::shared_ptr<Session>& session);
  /// Ends the thread (at exit, before the interpreter is gone).
  void stop() noexcept;
  /// Around a fork: the thread ends before it and begins again after it, so that a process whose program has
  /// one thread has one thread while it forks. CPython 3.12 and newer warn of more. Calls come in pairs, from
  /// any thread; of forks that overlap, the last one starts the thread. A thread that does not end within a
  /// second, because a file system hangs, goes on. The caller holds no lock that the thread takes.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;

  /// How long a foreign thread waits for the interpreter lock, ns; negative where it could not be asked. Set
  /// by the Python front. Called at most 10 times a second, and only while threads of this process that may
  /// hold the lock are busy with about a core.
  using LockProbe = std::int64_t (*)();
  void set_lock_probe(LockProbe probe) noexcept;
  /// Returns the address of the futex on which threads wait for the interpreter lock; 0 if there is no lock
  /// or it was not found. Set by the Python front. Called a few times at most, until it finds the lock,
  /// before threads are first looked at (lock_watch.h), which happens 50 times a second while the process
  /// uses half a core.
  using LockFinder = std::uintptr_t (*)();
  void set_lock_finder(LockFinder finder) noexcept;
  /// Returns the id of the thread that holds the interpreter lock; 0: nobody does; none: not known. Set by
  /// the Python front. Called at each look, with no lock held.
  using LockHolder = std::optional<int> (*)();
  void set_lock_holder(LockHolder holder) noexcept;

 private:
  Sampler();
  struct State;
  State* state_;  // never destroyed: the thread may outlive static objects
};

}  // namespace headrace::profile
