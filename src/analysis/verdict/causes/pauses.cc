// The loop stops every so many steps for work of its own: an evaluation, a checkpoint, logging.
#include <cmath>

#include "../long_steps.h"
#include "sentences.h"

namespace headrace::analysis {

std::optional<Finding> judge_pauses(const Case& facts) {
  if (facts.gate.state != Gate::State::kHealthy) return std::nullopt;
  const std::optional<LongSteps> found = long_steps(facts.profile, facts.thresholds.pauses);
  if (!found || !(found->periodic || found->share >= kMostOf)) return std::nullopt;
  const std::string period = as_written(std::round(found->steps_apart));
  Finding finding;
  const std::string often =
      found->periodic ? "every " + period + " steps the loop stops for "
                      : "in " + counted(static_cast<double>(found->count), "step") + " the loop stops for ";
  finding.headline = often + duration(found->each_s) +
                     (found->where.empty() ? " of its own work" : " in " + found->where) + ": " +
                     percent(found->share) + " of the time";
  finding.evidence = cause_evidence(in_words(*found), figures_of(*found));
  finding.advice.push_back(
      in_words("do it less often, on fewer batches, or beside the training (another process; an asynchronous "
               "checkpoint): without these pauses a step takes " +
               duration(found->without_s) + " on average instead of " + duration(facts.gate.step_s)));
  return finding;
}

}  // namespace headrace::analysis
