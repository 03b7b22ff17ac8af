// Threads and processes have too few cores, or one lock. docs/verdicts/lock_and_cores.md
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "../../handoff_costs.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- gil_contention ---

/// Simulated, more workers gain little, and much without the lock. Where that cannot be simulated, or loading is in the
/// loop's own thread: threads wait for it.
bool keeps_workers_from_helping(const Case& facts) {
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  const bool simulated = facts.more.known() && segment != nullptr && !segment->in_sink && !facts.loader;
  const bool lacks = facts.more.lack_the_lock() && (facts.more.with_both_s <= 0 || facts.lock.contended);
  return simulated ? lacks : facts.lock.contended;
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

// --- cpu_saturated ---

/// The operator that uses most of the cores holds the candidate up if nothing can be simulated, by more than threads of
/// libraries use, because nothing recorded names their operator.
int cpu_bottleneck(const Case& facts) {
  if (facts.interventions.gains(facts.candidate)) return facts.candidate;
  const int most_cpu = operator_with_most_cpu(facts.profile);
  if (most_cpu < 0) return facts.candidate;
  const double cpu_s = all_cpu_per_batch_s(facts.op());
  const double most_cpu_s = all_cpu_per_batch_s(facts.profile.operators[static_cast<std::size_t>(most_cpu)]);
  return most_cpu_s - cpu_s > pool_cpu_s(facts.profile) ? most_cpu : facts.candidate;
}

/// Simulated, more workers gain little, and much with more cores; a run that cannot be simulated uses the cores.
bool lacks_cores(const Case& facts) {
  return facts.more.known() ? facts.more.lack_cores()
                            : *facts.profile.host.cpu_share >= facts.thresholds.cpu.spent;
}

}  // namespace

/// Threads and the training loop wait for one interpreter lock: more threads share the same core.
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
  if (facts.more.lack_the_lock()) {
    const bool both = facts.more.with_both_s > 0;
    add_more_workers(facts, both ? "without the lock, with more cores" : "without the lock",
                     both ? facts.more.with_both_s : facts.more.without_lock_s, finding.evidence);
  }
  if (lock.waiting >= 0) finding.evidence.figures["waiting_threads"] = lock.waiting;
  if (lock.lock_share >= 0) finding.evidence.figures["lock_share"] = lock.lock_share;

  finding.advice = advise_other_processes(facts, limits);
  finding.certainty = lock.waiting >= 0 || lock.lock_share >= 0 ? 1 : kEstimated;
  return finding;
}

/// Worker processes compute in threads of their libraries too, and all of them together exceed the cores.
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

/// Workers may run on fewer cores than the training loop may: they share them while others are free.
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

/// The cores, or the quota, are spent on work like the candidate's: more workers would share the same cores.
std::optional<Finding> judge_cpu_saturated(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  const CpuThresholds& thresholds = facts.thresholds.cpu;
  const bool loop_waits_for_core = facts.gate.loop_waits_for_core;
  if (facts.candidate < 0 || host.cores <= 0 || !host.cpu_share ||
      !(loop_waits_for_core || facts.rate_bound()))
    return std::nullopt;
  if (facts.candidate_is(profile::OperatorKind::handoff) && !loop_waits_for_core)
    return std::nullopt;  // less to hand over is the cure, cores or not
  const profile::OperatorProfile& op = facts.op();
  const double cpu_bound = cpu_bound_share(op);
  const double all_foreign = host.foreign_cpu_share.value_or(0);
  const bool throttled = is_throttled(host, thresholds);
  if (!loop_waits_for_core && !throttled && !lacks_cores(facts)) return std::nullopt;

  const int costly = cpu_bottleneck(facts);
  const profile::OperatorProfile& named = facts.profile.operators[static_cast<std::size_t>(costly)];
  const double all_cpu_s =
      facts.profile.sink.compute_cpu_s.value_or(0) + input_cpu_s(facts.profile) + pool_cpu_s(facts.profile);
  const double share = ratio(all_cpu_per_batch_s(named), all_cpu_s);
  const bool by_neighbours = others_have_the_cores(host) && !throttled;
  const std::string cores = counted(host.cores, "core");
  Finding finding;
  finding.op = named.name;
  finding.headline = "the CPU is spent: " + named.name + " and the rest use all of " + cores;
  if (facts.more.lack_cores() && *host.cpu_share < thresholds.spent)
    finding.headline = "more workers of " + op.name + " would find no core: the run uses " +
                       percent(*host.cpu_share) + " of " + cores;
  if (loop_waits_for_core) {
    finding.headline = "the training loop waits for a core for " + percent(facts.gate.loop_core_wait_share) +
                       " of every step: " + named.name + " and the rest use them";
  }
  const std::string quota = fmt::format("{:.2g} cores", *host.cpu_share * host.cores);
  if (throttled) {
    finding.headline = "the CPU quota, about " + quota + ", stops the run for " +
                       percent(*host.throttled_share) + " of the time";
  }
  if (by_neighbours) {
    finding.headline = "other processes hold the cores: they use " + percent(all_foreign) + " of " + cores +
                       ", this run " + percent(*host.cpu_share);
  }
  finding.evidence =
      cause_evidence("this run uses " + percent(*host.cpu_share) + " of " + counted(host.cores, "core") +
                         ", others " + percent(host.foreign_cpu_share.value_or(0)) + "; " + named.name +
                         " costs " + percent(share) + " of the run's CPU time" +
                         (throttled ? "; the quota stopped it for " + percent(*host.throttled_share) : ""),
                     {{"cpu_share", *host.cpu_share},
                      {"foreign_cpu_share", host.foreign_cpu_share.value_or(0)},
                      {"cores", static_cast<double>(host.cores)},
                      {"cpu_bound_share", cpu_bound},
                      {"operator_cpu_share", share}});
  add_absence(facts, costly, finding.evidence);
  if (facts.more.lack_cores())
    add_more_workers(facts, "with more cores", facts.more.with_cores_s, finding.evidence);
  const double pool_share = pool_share_of_process(facts.profile);
  if (!by_neighbours && pool_share >= kMostOf) {
    finding.certainty = kEstimated;
    finding.evidence.says += "; a library's own threads take " + percent(pool_share) +
                             " of the process's CPU time, and which operator starts them is not recorded";
    finding.evidence.figures["pool_cpu_share"] = pool_share;
  }
  if (by_neighbours) {
    finding.advice.push_back(in_words("stop the other processes or run this elsewhere: while they use " +
                                      percent(all_foreign) + " of " + cores +
                                      ", more workers compete with them for the same cores"));
    return finding;
  }
  if (throttled) {
    finding.advice.push_back(in_words(
        "raise the CPU limit of the container (docker run --cpus, resources.limits.cpu of a pod): more "
        "workers share the same " +
        quota));
  }
  finding.advice.push_back(
      in_words("adding workers will not help: reduce the work of " + named.name +
               (named.functions.empty() ? "" : ", most of it in " + named.functions.front().name) +
               " (smaller inputs, a faster decoder, a cache) or move it off this machine"));
  if (facts.loader) {
    if (std::optional<Advice> as_many = advise_workers_as_cores(*facts.loader, facts.predictor)) {
      finding.advice.push_back(std::move(*as_many));
    }
  } else if (named.workers > host.cores) {
    finding.advice.push_back(in_words(counted(host.cores, "worker") + " for " + named.name +
                                      " would do as much as " + as_written(named.workers)));
  }
  return finding;
}

}  // namespace headrace::analysis
