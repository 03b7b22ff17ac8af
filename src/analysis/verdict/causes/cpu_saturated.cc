// The cores, or the quota, are spent on work like the candidate's: more workers would share the same cores.
#include <algorithm>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

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
  const bool throttled = host.throttled_share.value_or(0) >= thresholds.throttled_share;
  if (!loop_waits_for_core && !throttled && !lacks_cores(facts)) return std::nullopt;

  const int costly = cpu_bottleneck(facts);
  const profile::OperatorProfile& named = facts.profile.operators[static_cast<std::size_t>(costly)];
  const double all_cpu_s =
      facts.profile.sink.compute_cpu_s.value_or(0) + input_cpu_s(facts.profile) + pool_cpu_s(facts.profile);
  const double share = ratio(all_cpu_per_batch_s(named), all_cpu_s);
  // Alone, this run would have cores left: then the neighbours are the reason, not its work.
  const bool by_neighbours = has_neighbours(host) && *host.cpu_share < thresholds.spent && !throttled;
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
  if (!by_neighbours && pool_share >= kMuchInPools) {
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
  finding.advice.push_back(
      in_words("adding workers will not help: reduce the work of " + named.name +
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
