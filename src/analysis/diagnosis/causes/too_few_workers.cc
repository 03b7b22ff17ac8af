// Busy all the time, slower than the sink, and another worker would help.
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// More workers change the bound phases only; the prediction is for the whole run.
std::vector<Advice> advise_for_bound_part(const Case& facts) {
  const Intermittence& part = *facts.intermittent;
  profile::Profile bound = facts.profile;
  bound.sink.step_s = part.bound_step_s;
  bound.sink.compute_s = part.bound_compute_s;
  bound.operators[static_cast<std::size_t>(facts.candidate)].demand_s = part.bound_demand_s;
  std::vector<Advice> rows = advise_workers(*predictor_for(bound), facts.candidate);
  for (Advice& row : rows) {
    if (!row.predicted_step_s) continue;
    for (std::optional<double>* value : {&row.predicted_step_s, &row.low, &row.high}) {
      **value = part.bound_step_share * **value + (1 - part.bound_step_share) * part.calm_step_s;
    }
    row.speedup = facts.gate.step_s / *row.predicted_step_s;
    row.text += "; it helps in the part of the run that waits";
  }
  return rows;
}

}  // namespace

std::optional<Finding> judge_too_few_workers(const Case& facts) {
  if (facts.candidate < 0 || !facts.rate_bound()) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  // A loader that shows one figure for itself and its inputs does not say what its workers do.
  if (op.fidelity == profile::Fidelity::inclusive) return std::nullopt;
  Finding finding;
  finding.headline = op.name + " has too few workers";
  finding.evidence =
      cause_evidence(op.name +
                         (op.workers == 1 ? "'s one worker is busy "
                                          : "'s " + as_written(op.workers) + " workers are busy ") +
                         percent(facts.utilisation) + " of the time, which sustains a step of " +
                         duration(facts.demand.of(facts.candidate)->demand_s) + " at best",
                     {{"workers", static_cast<double>(op.workers)},
                      {"utilisation", facts.utilisation},
                      {"pressure", facts.pressure}});
  finding.advice =
      facts.intermittent ? advise_for_bound_part(facts) : advise_workers(facts.predictor, facts.candidate);
  return finding;
}

}  // namespace headrace::analysis
