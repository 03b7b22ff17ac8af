// Reads the levels of queues that are too fast to be recorded item by item.
#pragma once

#include <atomic>
#include <memory>

#include "headrace/queues/paced_probe.h"

namespace headrace::queues {

/// One thread of the process, which reads every fast queue 1000 times a second: what it reads lasts until
/// it reads again, so the levels are weighted by time. It runs only while some queue is fast. Thread-safe.
class LevelSampler {
 public:
  static LevelSampler& instance();

  /// Samples the queue until it is gone or no longer fast. False if no thread could be started.
  bool watch(std::weak_ptr<PacedProbe> queue) noexcept;
  /// Around a fork, as those of profile::Sampler: the thread ends before it and begins again after it.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;

 private:
  LevelSampler();
  struct State;
  /// The calling process's own: what a forked child finds belongs to its parent's thread, and stays behind.
  State& state();
  std::atomic<State*> state_;  // never destroyed: the thread may outlive static objects
};

}  // namespace headrace::queues
