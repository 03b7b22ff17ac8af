// Worker processes compute in threads of their libraries too, and all of them together exceed the cores.
#include <algorithm>
#include <map>

#include "headrace/analysis/diagnosis/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

struct WorkerProcesses {
  double cpu_s = 0;         ///< of all their threads
  double in_workers_s = 0;  ///< of that, in the threads that run operators
  int count = 0;
  double threads = 0;  ///< in one of them, at most
};

WorkerProcesses worker_processes(const profile::Profile& profile) {
  WorkerProcesses all;
  std::map<std::int64_t, double> process_cpu_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::WorkerProfile& worker : op.per_worker) {
      if (!worker.process_cpu_s || !worker.cpu_s) continue;
      double& cpu_s = process_cpu_s[worker.worker_id.value_or(worker.pid)];
      cpu_s = std::max(cpu_s, *worker.process_cpu_s);
      all.in_workers_s += *worker.cpu_s;
      all.threads = std::max(all.threads, static_cast<double>(worker.process_threads.value_or(1)));
    }
  }
  for (const auto& [process, cpu_s] : process_cpu_s) all.cpu_s += cpu_s;
  all.count = static_cast<int>(process_cpu_s.size());
  return all;
}

}  // namespace

std::optional<Finding> judge_oversubscribed(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  const OversubscribedThresholds& thresholds = facts.thresholds.oversubscribed;
  if (facts.candidate < 0 || host.cores <= 0 || facts.op().workers < 2) return std::nullopt;
  // Workers wait for cores that other programs have.
  if (host.cpu_share.value_or(1) < host.foreign_cpu_share.value_or(0)) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const WorkerProcesses processes = worker_processes(facts.profile);
  // One process that computes in several threads is meant to.
  if (processes.count < 2 || processes.cpu_s <= 0) return std::nullopt;
  const double elsewhere = 1 - std::min(1.0, processes.in_workers_s / processes.cpu_s);
  const double computing_threads = processes.count / std::max(0.01, 1 - elsewhere);
  const double queues = core_wait_share(op);
  if (elsewhere < thresholds.elsewhere_share ||
      computing_threads < thresholds.threads_per_core * host.cores || queues < thresholds.queueing_share)
    return std::nullopt;
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
