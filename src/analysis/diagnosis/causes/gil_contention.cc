// Threads and the training loop wait for one interpreter lock: more threads share the same core.
#include <fmt/core.h>

#include "../../handoff_costs.h"
#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_gil_contention(const Case& facts) {
  const InterpreterLock& lock = facts.lock;
  if (!lock.contended || lock.blamed < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(lock.blamed)];
  // A thread that sleeps beside busy ones may be the limit, unless the lock is never free: then nothing else
  // can be.
  const SegmentDemand& first = facts.demand.first();
  const profile::OperatorProfile& slowest = facts.profile.operators[static_cast<std::size_t>(first.largest)];
  const bool sleeper_limits = first.largest != lock.blamed &&
                              first.utilisation > facts.thresholds.rate.never_rests_share &&
                              cpu_bound_share(slowest) < facts.thresholds.lock.computes_share &&
                              lock.lock_share < facts.thresholds.lock.never_free_share;
  if (sleeper_limits) return std::nullopt;
  const double cpu_s = cpu_per_batch_s(op);
  Finding finding;
  finding.op = op.name;
  finding.headline = op.name + " and the training loop share one interpreter lock";
  finding.evidence = cause_evidence(
      "the process uses " + fmt::format("{:.2f}", lock.process_cores) + " cores with " + duration(cpu_s) +
          " of CPU in " + op.name + " per step" +
          (lock.waiting >= 0
               ? "; " + fmt::format("{:.2f}", lock.waiting) + " of its threads wait for the lock on average"
               : "") +
          (lock.lock_share >= 0 ? "; the lock was taken at " + percent(lock.lock_share) + " of the probes"
                                : ""),
      {{"process_cpu_cores", lock.process_cores},
       {"busy_threads", lock.busy_threads},
       {"off_cpu_rest", lock.off_cpu_rest},
       {"cpu_per_step_s", cpu_s}});
  if (const auto held_s = held_per_batch_s(op)) {
    finding.evidence.says += "; " + op.name + " holds it for " + duration(*held_s) + " of every step";
    finding.evidence.figures["held_per_step_s"] = *held_s;
  }
  if (lock.waiting >= 0) finding.evidence.figures["waiting_threads"] = lock.waiting;
  if (lock.lock_share >= 0) finding.evidence.figures["lock_share"] = lock.lock_share;

  Advice advice = advise_processes(facts.predictor, lock.blamed);
  advice.text += "; more threads will not help";
  if (advice.predicted_step_s || cpu_s > kProcessHandoff_s) finding.advice.push_back(std::move(advice));
  finding.certainty = lock.waiting >= 0 || lock.lock_share >= 0 ? 1 : 0.8;
  return finding;
}

}  // namespace headrace::analysis
