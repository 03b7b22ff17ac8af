// Worker processes compute in threads of their libraries too, and all of them together exceed the cores.
#include <algorithm>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_oversubscribed(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  const OversubscribedThresholds& thresholds = facts.thresholds.oversubscribed;
  if (facts.candidate < 0 || host.cores <= 0 || facts.op().workers < 2) return std::nullopt;
  // Workers wait for cores that other programs have.
  if (host.cpu_share.value_or(1) < host.foreign_cpu_share.value_or(0)) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const WorkerProcesses processes = worker_processes(facts.profile);
  const double elsewhere = processes.elsewhere_share();
  const double computing_threads = processes.count / std::max(0.01, 1 - elsewhere);
  const double queues = core_wait_share(op);
  if (elsewhere < thresholds.elsewhere_share || computing_threads <= host.cores) return std::nullopt;
  Finding finding;
  finding.headline = op.name + "'s workers and the threads of their libraries are more than the cores";
  finding.evidence = cause_evidence(
      percent(elsewhere) + " of the CPU time of " + as_written(processes.count) +
          " worker processes goes to threads of libraries (up to " + as_written(processes.threads) +
          " threads in one process, " + counted(host.cores, "core") + "); " + op.name + " waits for a core " +
          percent(queues) + " of its time",
      {{"library_cpu_share", elsewhere},
       {"process_threads", processes.threads},
       {"run_queue_share", queues},
       {"cores", static_cast<double>(host.cores)}});
  finding.advice.push_back(in_words(
      "let each worker compute in one thread: cv2.setNumThreads(0) in the function that starts a worker, and "
      "OMP_NUM_THREADS=1, OPENBLAS_NUM_THREADS=1 or RAYON_NUM_THREADS=1 before the start, whichever library "
      "it uses"));
  if (facts.loader) {
    if (std::optional<Advice> fewer = advise_fewer_workers(*facts.loader, facts.predictor))
      finding.advice.push_back(std::move(*fewer));
  }
  return finding;
}

}  // namespace headrace::analysis
