// Two operators limit in turn: the average of the run names one of them, or neither.
#include "headrace/analysis/verdict/plan.h"
#include "sentences.h"

namespace headrace::analysis {
std::optional<Finding> judge_alternating(const Case& facts) {
  const auto pair = alternating_pair(facts.phases, facts.shapes, facts.thresholds.phases);
  if (!pair || facts.lock.contended) return std::nullopt;
  const std::string& a = facts.profile.operators[static_cast<std::size_t>(pair->first)].name;
  const std::string& b = facts.profile.operators[static_cast<std::size_t>(pair->second)].name;
  double a_s = 0;
  double b_s = 0;
  for (const Phase& phase : facts.phases) {
    if (phase.bound && phase.leader() == pair->first) a_s += phase.duration_s();
    if (phase.bound && phase.leader() == pair->second) b_s += phase.duration_s();
  }
  Finding finding;
  finding.headline = a + " and " + b + " limit in turn";
  finding.evidence = cause_evidence(a + " limits for " + duration(a_s) + " of the run, " + b + " for " +
                                        duration(b_s) + "; see the windows",
                                    {{"first_s", a_s}, {"second_s", b_s}});
  finding.advice = plan_after(facts.predictor, {});
  finding.advice.push_back(in_words("act on both: relieving only one of " + a + " and " + b +
                                    " gains in its own part of the run"));
  return finding;
}

}  // namespace headrace::analysis
