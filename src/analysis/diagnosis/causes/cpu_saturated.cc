// The cores, or the quota, are spent on work like the candidate's: more workers would share the same cores.
#include <algorithm>

#include "headrace/analysis/diagnosis/loader_advice.h"
#include "headrace/analysis/diagnosis/pool_threads.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Others use at least this share of the cores: then they are the reason, as far as this run has some left.
constexpr double kNeighbours = 0.2;
/// Where much is done in threads of libraries: whose work that is, nothing recorded tells.
constexpr double kUncertain = 0.85;
/// Another operator must use so much more CPU than the candidate to be named instead.
constexpr double kDearer = 1.25;

/// Where the candidate itself waits for a core, whoever uses most of them holds it up. Threads of libraries may make that
/// the operator which queues and ledger name, if they use more than it lacks to the first.
int spender(const Case& facts) {
  const auto cpu_s = [&](int index) {
    return all_cpu_per_batch_s(facts.profile.operators[static_cast<std::size_t>(index)]);
  };
  const int dearest = dearest_operator(facts.profile);
  const bool dearer = dearest >= 0 && cpu_s(dearest) >= kDearer * cpu_s(facts.candidate);
  // Simulations know no threads of libraries.
  const auto in_pools = [&](int index) {
    const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(index)];
    return all_cpu_per_batch_s(op) > cpu_per_batch_s(op);
  };
  const bool simulated = facts.interventions.gains(facts.candidate) && !(dearer && in_pools(dearest));
  if (simulated || core_wait_share(facts.op()) < facts.thresholds.cpu.queueing_share) return facts.candidate;
  const int most = dearer ? dearest : facts.candidate;
  const int blocks = facts.queues.op;
  const bool agreed = blocks >= 0 && blocks == facts.ledger.op;
  return agreed && pool_cpu_s(facts.profile) > cpu_s(most) - cpu_s(blocks) ? blocks : most;
}

}  // namespace

std::optional<Finding> judge_cpu_saturated(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  const CpuThresholds& thresholds = facts.thresholds.cpu;
  const bool crowded = facts.gate.crowded;
  if (facts.candidate < 0 || host.cores <= 0 || !host.cpu_share || !(crowded || facts.rate_bound()))
    return std::nullopt;
  if (facts.candidate_is(profile::OperatorKind::handoff) && !crowded)
    return std::nullopt;  // less to hand over is the cure, cores or not
  const profile::OperatorProfile& op = facts.op();
  const double cpu_bound = cpu_bound_share(op);
  const bool all_cores =
      op.workers >= host.cores && facts.utilisation >= facts.thresholds.candidate.never_rest_share;
  const bool waits_for_core = all_cores && core_wait_share(op) >= thresholds.queueing_share;
  // Others count as far as they take cores that this run waits for: one worker beside a busy neighbour on two
  // cores still gains from a second one. Where as many workers as cores queue for them, all of it counts.
  const double all_foreign = host.foreign_cpu_share.value_or(0);
  const double foreign = waits_for_core ? all_foreign : host.foreign_contention_share.value_or(all_foreign);
  const double used = std::min(1.0, *host.cpu_share + foreign);
  const bool throttled = host.throttled_share.value_or(0) >= thresholds.throttled_share;
  // Without run-queue wait, a worker that shares its core looks as if it slept; that it spends the cores does
  // not lie.
  const double own_cores = ratio(all_cpu_per_batch_s(op), facts.gate.step_s);
  const bool spends_them = !op.run_queue_wait_s && cpu_bound >= thresholds.some_cpu_share &&
                           own_cores >= thresholds.own_cores * host.cores;
  if (cpu_bound < thresholds.cpu_bound_share && !spends_them && !crowded &&
      !(throttled && cpu_bound >= thresholds.some_cpu_share))
    return std::nullopt;
  const double spent = all_cores ? thresholds.spent_by_workers : thresholds.spent;
  if (used < spent && !waits_for_core && !throttled && !crowded) return std::nullopt;

  const int costly = spender(facts);
  const profile::OperatorProfile& named = facts.profile.operators[static_cast<std::size_t>(costly)];
  const double all_cpu_s =
      facts.profile.sink.compute_cpu_s.value_or(0) + input_cpu_s(facts.profile) + pool_cpu_s(facts.profile);
  const double share = ratio(all_cpu_per_batch_s(named), all_cpu_s);
  // Alone, this run would have cores left: then the neighbours are the reason, not its work.
  const bool by_neighbours =
      all_foreign >= kNeighbours && *host.cpu_share < thresholds.spent_by_workers && !throttled;
  const std::string cores = counted(host.cores, "core");
  Finding finding;
  finding.op = named.name;
  finding.headline = "the CPU is spent: " + named.name + " and the rest use all of " + cores;
  if (crowded) {
    finding.headline = "the training loop waits for a core for " + percent(facts.gate.crowded_share) +
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
  const double pool_share = pool_share_of_process(facts.profile);
  if (!by_neighbours && pool_share >= kMuchInPools) {
    finding.certainty = kUncertain;
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
