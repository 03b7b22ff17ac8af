// The operator's workers queue for one lock: more of them gain nothing.
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/shared_waits.h"
#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_shared_resource(const Case& facts) {
  if (facts.candidate < 0 || facts.op().workers < 2) return std::nullopt;
  const double waits = lock_share(facts.op());
  if (waits < facts.thresholds.shared_lock.lock_share) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  // A worker that joins threads of its own, which compute meanwhile, acquires a lock too, but none that the workers share.
  const WorkerProcesses processes = worker_processes(facts.profile);
  if (processes.cpu_s - processes.in_workers_s >= kMostOf * waits * op.busy_s) return std::nullopt;
  Finding finding;
  finding.headline = op.name + "'s workers queue for one lock";
  finding.evidence =
      cause_evidence(op.name + " spends " + percent(waits) + " of its time acquiring a lock that its " +
                         as_written(op.workers) + " workers share, so one of them reads at a time",
                     {{"lock_share", waits}, {"workers", static_cast<double>(op.workers)}});
  finding.advice.push_back(with_shorter_items(
      facts,
      in_words("give each worker a handle (file, connection, reader) of its own instead of the "
               "lock, or hold the lock for less; more workers gain nothing; predicted: without "
               "the waits for the lock"),
      waits));
  return finding;
}

}  // namespace headrace::analysis
