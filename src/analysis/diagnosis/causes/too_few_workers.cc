// Busy all the time, slower than the sink, and another worker would help.
#include "sentences.h"

namespace headrace::analysis {
namespace {

std::optional<Finding> judge(const Case& facts) {
  if (facts.candidate < 0 || !facts.rate_bound()) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  // A loader that shows one figure for itself and its inputs does not say what its workers do.
  if (op.fidelity == "inclusive") return std::nullopt;
  Finding finding;
  finding.headline = op.name + " has too few workers";
  finding.evidence = cause_evidence("its " + counted(op.workers, "worker") + (op.workers == 1 ? " is" : " are") +
                                        " busy " + percent(facts.utilisation) + " of the time and sustain a step of " +
                                        duration(facts.demand.of(facts.candidate)->demand_s) + " at best",
                                    {{"workers", static_cast<double>(op.workers)},
                                     {"utilisation", facts.utilisation},
                                     {"pressure", facts.pressure}});
  finding.advice = advise_workers(facts.profile, facts.predictor, facts.candidate);
  return finding;
}

}  // namespace

extern const Cause kTooFewWorkers;
const Cause kTooFewWorkers{"too_few_workers", false, judge};

}  // namespace headrace::analysis
