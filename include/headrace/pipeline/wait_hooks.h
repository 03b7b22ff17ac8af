// Hooks around a worker's waits: to release an interpreter's lock, for example.
#pragma once

namespace headrace::pipeline {

/// A worker calls `enter` when a pass begins and `leave` when it ends, and `before_wait` and `after_wait` around
/// every call that may sleep at a queue. All four are called on the worker's own thread and must not throw.
///
/// The worker of a Python body holds the interpreter lock except during waits, so that the lock changes hands
/// when a worker runs out of work, not once per item.
class WaitHooks {
 public:
  virtual ~WaitHooks() = default;
  virtual void enter() noexcept {}
  virtual void leave() noexcept {}
  virtual void before_wait() noexcept {}
  virtual void after_wait() noexcept {}
};

}  // namespace headrace::pipeline
