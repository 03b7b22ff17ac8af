// Threads and the training loop wait for one interpreter lock: more threads share the same core.
#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "../../handoff_costs.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Simulated, more workers gain little, and much without the lock. Where that cannot be simulated, or loading is in the
/// loop's own thread: threads wait for it.
bool keeps_workers_from_helping(const Case& facts) {
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  const bool simulated = facts.more.known() && segment != nullptr && !segment->in_sink && !facts.loader;
  return simulated ? facts.more.lack_the_lock() : facts.lock.contended;
}

/// Advice for the costliest operator and the one that holds the lock longest: what gains more comes first.
std::vector<Advice> advise_other_processes(const Case& facts, int costs_most) {
  std::vector<int> indices{costs_most};
  if (facts.lock.longest_holder != costs_most) indices.push_back(facts.lock.longest_holder);
  std::vector<Advice> rows;
  for (int index : indices) {
    Advice advice = advise_processes(facts.predictor, index);
    advice.text += "; more threads will not help";
    const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(index)];
    if (advice.predicted_step_s || cpu_per_batch_s(op) > kProcessHandoff_s) rows.push_back(std::move(advice));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Advice& a, const Advice& b) {
    return a.predicted_step_s.value_or(1e9) < b.predicted_step_s.value_or(1e9);
  });
  return rows;
}

}  // namespace

std::optional<Finding> judge_gil_contention(const Case& facts) {
  const InterpreterLock& lock = facts.lock;
  if (lock.longest_holder < 0 || !keeps_workers_from_helping(facts)) return std::nullopt;
  const int limits = facts.interventions.gains(facts.candidate) ? facts.candidate : lock.longest_holder;
  const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(limits)];
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
       {"cpu_per_step_s", cpu_s}});
  if (const auto held_s = held_per_batch_s(op)) {
    finding.evidence.says += "; " + op.name + " holds it for " + duration(*held_s) + " of every step";
    finding.evidence.figures["held_per_step_s"] = *held_s;
  }
  add_absence(facts, limits, finding.evidence);
  if (facts.more.lack_the_lock())
    add_more_workers(facts, "without the lock", facts.more.without_lock_s, finding.evidence);
  if (lock.waiting >= 0) finding.evidence.figures["waiting_threads"] = lock.waiting;
  if (lock.lock_share >= 0) finding.evidence.figures["lock_share"] = lock.lock_share;

  finding.advice = advise_other_processes(facts, limits);
  finding.certainty = lock.waiting >= 0 || lock.lock_share >= 0 ? 1 : kEstimated;
  return finding;
}

}  // namespace headrace::analysis
