// A thread of Headrace's own, which leaves no trace once it has ended.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace headrace::profile {

/// While it lives, the calling thread blocks all signals, and so does a thread that it starts, from its first
/// instruction on. A signal that the program takes with sigwait must never be delivered to a thread of ours.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Waits, 0.1 s at most, until the kernel no longer counts thread `tid` of this process, which is ending.
void await_thread_end(int tid) noexcept;

/// Runs one function. Signals go to the user's threads. Not thread-safe: the owner locks.
class BackgroundThread {
 public:
  /// `name`: 15 characters at most. False if no thread can be started (a limit on processes or memory).
  bool start(const char* name, std::function<void()> body) noexcept;
  /// Waits for the function's end, and until /proc/self/stat counts one thread less: pthread_join returns
  /// some microseconds earlier. Does nothing if no thread was started.
  void join() noexcept;
  /// By the function, at its end: nobody has to join the thread any more. Who does waits for its end in the
  /// kernel.
  void leave() noexcept;

 private:
  std::thread thread_;
  std::shared_ptr<std::atomic<int>> tid_;
};

}  // namespace headrace::profile
