#include "headrace/analysis/read/interpreter_lock.h"

#include <algorithm>
#include <vector>

#include "headrace/analysis/read/demand.h"
#include "numbers.h"
#include "own_compute.h"

namespace headrace::analysis {
namespace {

/// Steps without a busy worker from which on their mean is believed.
constexpr std::uint64_t kQuietSteps = 3;

/// An operator's unknown place follows from the lock.
bool in_thread(const profile::OperatorProfile& op, double lock_share, const LockThresholds& thresholds) {
  return op.executor == profile::Executor::thread ||
         (op.executor.empty() && lock_share >= thresholds.taken_share);
}

/// The sink's compute when no other thread wanted the lock; 0 if that is not known.
double quiet_compute_s(const profile::SinkProfile& sink) {
  if (sink.quiet_compute_s && sink.quiet_steps >= kQuietSteps) return *sink.quiet_compute_s;
  return fast_compute_s(sink);
}

/// A framework's event loop takes the lock for each item that goes from one stage to the next.
bool has_event_loop(const profile::Profile& profile) {
  if (!profile.model) return false;
  const auto& stages = profile.model->stages;
  return std::any_of(stages.begin(), stages.end(), [](const profile::LoaderStage& stage) {
    return stage.runs_in == profile::RunsIn::async;
  });
}

/// Share of busy time of the operator with the largest demand.
double largest_lock_wait(const profile::Profile& profile) {
  const std::vector<double> demands = own_demands(profile);
  const auto largest = std::max_element(demands.begin(), demands.end());
  if (largest == demands.end()) return 0;
  const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(largest - demands.begin())];
  return ratio(op.lock_wait_s.value_or(0), op.busy_s);
}

/// Threads of the process, but for those that compute and are known to hold it for next to none of that.
std::vector<bool> who_needs_it(const profile::Profile& profile, const LockThresholds& thresholds) {
  std::vector<bool> needed;
  for (const profile::OperatorProfile& op : profile.operators) {
    const bool without = op.lock_held_s && op.cpu_s && *op.lock_held_s < thresholds.without_lock * *op.cpu_s;
    needed.push_back(op.executor != profile::Executor::process && !without);
  }
  return needed;
}

struct Threads {
  double busy = 0;       // threads on average
  double cpu_cores = 0;  // of the operators in threads
  double rest = 0;       // of the threads that compute: neither on a core nor waiting for one
  double computing = 0;
};

/// Whether `op` rather than the one before it keeps the others waiting.
bool holds_longer(const profile::OperatorProfile& op, const profile::OperatorProfile& before) {
  const auto held_s = [](const profile::OperatorProfile& each) {
    return held_per_batch_s(each).value_or(cpu_per_batch_s(each));
  };
  return held_s(op) > held_s(before);
}

}  // namespace

std::optional<double> held_per_batch_s(const profile::OperatorProfile& op) noexcept {
  if (!op.lock_held_s) return std::nullopt;
  return std::max(0.0, op.demand_s) * op.workers * ratio(*op.lock_held_s, op.busy_s);
}

InterpreterLock read_interpreter_lock(const profile::Profile& profile, const LockThresholds& thresholds) {
  InterpreterLock lock;
  lock.lock_share = profile.host.gil_share.value_or(-1);
  const double step_s = profile.sink.step_s;
  lock.needed = who_needs_it(profile, thresholds);
  if (step_s <= 0) return lock;

  Threads threads;
  if (profile.sink.compute_lock_wait_s) lock.waiting = *profile.sink.compute_lock_wait_s / step_s;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    if (!in_thread(op, lock.lock_share, thresholds) || op.fidelity == profile::Fidelity::inclusive) continue;
    // Parts of the training loop's own thread; and worker processes have locks of their own.
    if (op.kind == profile::OperatorKind::handoff || op.kind == profile::OperatorKind::transfer ||
        op.kind == profile::OperatorKind::sampler)
      continue;
    const double busy = std::max(0.0, op.demand_s) * op.workers / step_s;
    const double cpu = cpu_per_batch_s(op) / step_s;
    if (op.lock_wait_s) lock.waiting = std::max(0.0, lock.waiting) + busy * ratio(*op.lock_wait_s, op.busy_s);
    if (!op.in_sink) threads.busy += busy;
    threads.cpu_cores += cpu;
    if (cpu >= thresholds.computes_share * busy) {
      threads.rest += std::max(0.0, busy * (1 - core_wait_share(op)) - cpu);
      threads.computing += busy;
    }
    if (!lock.needed[i] || cpu <= 0) continue;
    if (lock.longest_holder < 0 ||
        holds_longer(op, profile.operators[static_cast<std::size_t>(lock.longest_holder)]))
      lock.longest_holder = static_cast<int>(i);
  }
  const double sink_cpu = profile.sink.compute_cpu_s.value_or(0) / step_s;
  lock.process_cores = profile.host.process_cpu_cores.value_or(threads.cpu_cores + sink_cpu);
  lock.busy_threads = threads.busy + profile.sink.compute_s / step_s + (has_event_loop(profile) ? 1 : 0);

  if (lock.waiting >= 0) {
    const double stretch_s = profile.sink.compute_lock_wait_s.value_or(0);
    lock.contended = lock.longest_holder >= 0 && largest_lock_wait(profile) >= thresholds.waits_share;
    if (lock.contended) lock.stretch_s = stretch_s;
    // The waits of an event loop's own thread are in no operator.
    if (lock.contended || !has_event_loop(profile)) return lock;
  }
  // Without probes, threads that compute must be off the cores.
  const bool taken = lock.lock_share >= 0
                         ? lock.lock_share >= thresholds.taken_share
                         : ratio(threads.rest, threads.computing) >= thresholds.off_cpu_share;
  lock.contended = lock.longest_holder >= 0 && lock.busy_threads >= thresholds.busy_threads && taken;
  if (lock.contended) {
    const double quiet = quiet_compute_s(profile.sink);
    if (quiet > 0) lock.stretch_s = std::max(0.0, profile.sink.compute_s - quiet);
  }
  return lock;
}

}  // namespace headrace::analysis
