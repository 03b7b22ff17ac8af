// Workers may run on fewer cores than the training loop may: they share them while others are free.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_pinned(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  const PinnedThresholds& thresholds = facts.thresholds.pinned;
  if (facts.candidate < 0 || host.cores < 2) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  std::int64_t allowed = 0;
  for (const profile::WorkerProfile& worker : op.per_worker)
    allowed = std::max(allowed, worker.allowed_cores.value_or(host.cores));
  if (op.per_worker.empty() || allowed >= host.cores) return std::nullopt;
  // Workers that each have a core of their own are pinned on purpose: they wait for none.
  const double queues = core_wait_share(op);
  const double used = host.cpu_share.value_or(1) + host.foreign_cpu_share.value_or(0);
  if (queues < thresholds.queueing_share || used >= facts.thresholds.cpu.spent) return std::nullopt;
  const std::string cores = counted(static_cast<double>(allowed), "core");
  Finding finding;
  finding.headline = op.name + "'s workers may run on " + cores + " of " + as_written(host.cores);
  finding.evidence = cause_evidence(op.name + " waits for a core " + percent(queues) +
                                        " of its time, while " + percent(std::max(0.0, 1 - used)) +
                                        " of the cores are free: its workers may use " + cores,
                                    {{"allowed_cores", static_cast<double>(allowed)},
                                     {"cores", static_cast<double>(host.cores)},
                                     {"run_queue_share", queues},
                                     {"used_share", used}});
  finding.advice.push_back(in_words(
      "give the workers all cores: os.sched_setaffinity(0, range(os.cpu_count())) in worker_init_fn; "
      "libraries that pin threads (KMP_AFFINITY, GOMP_CPU_AFFINITY, OMP_PROC_BIND) pass it on to "
      "processes that are forked later"));
  return finding;
}

}  // namespace headrace::analysis
