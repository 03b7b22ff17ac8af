// Fast enough on average; buffers are too short for how much the service times vary.
#include <algorithm>

#include "sentences.h"

namespace headrace::analysis {
std::optional<Finding> judge_variance(const Case& facts) {
  if (facts.candidate < 0 || facts.rate_bound() || facts.intermittent || facts.drain) return std::nullopt;
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  if (segment == nullptr || segment->in_sink || facts.op().fidelity == profile::Fidelity::inclusive)
    return std::nullopt;
  const double cv = std::max(facts.spread_per_batch(), compute_cv(facts.profile.sink));
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  const bool fast_enough = segment->demand_s <= facts.gate.own_compute_s;
  finding.headline = op.name + (fast_enough ? " is fast enough on average, but varies" : " varies") +
                     " more than the buffers bridge";
  char spread[32];
  std::snprintf(spread, sizeof spread, "%.2f", cv);
  const std::string demand = duration(segment->demand_s), step = duration(facts.gate.own_compute_s);
  const std::string means =
      fast_enough ? "no operator is slower than the training step (" + op.name + " " + demand + ", step " +
                        step + "), but times vary"
                  : op.name + " takes " + demand + " beside a training step of " + step + ", and times vary";
  finding.evidence =
      cause_evidence(means + " (spread " + spread + " of the mean per batch)",
                     {{"demand_s", segment->demand_s}, {"compute_s", facts.gate.own_compute_s}, {"cv", cv}});
  if (facts.interventions.known()) {
    finding.evidence.says +=
        "; simulated with even times, a step takes " + duration(facts.interventions.even_s);
    finding.evidence.figures["even_step_s"] = facts.interventions.even_s;
  }
  finding.advice = advise_capacity(facts.predictor, facts.candidate);
  if (!facts.interventions.known()) finding.certainty = kEstimated;
  return finding;
}

}  // namespace headrace::analysis
