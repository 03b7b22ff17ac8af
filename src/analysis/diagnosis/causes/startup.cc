// Worker start or first batches dominate a short run whose steady loop is healthy.
#include "sentences.h"

namespace headrace::analysis {
namespace {

std::optional<Finding> judge(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const double startup_s = profile.startup.first_batch_s + profile.startup.later_epochs_s;
  if (facts.gate.state != Gate::State::kHealthy || startup_s < 0.5 || startup_s < profile.elapsed_s)
    return std::nullopt;
  Finding finding;
  finding.headline = "start-up took longer than the training loop itself";
  finding.kind = "not_input_bound";
  finding.names_operator = false;
  finding.evidence = cause_evidence(
      "starting took " + duration(startup_s) + ", all steps together " + duration(profile.elapsed_s),
      {{"startup_s", startup_s},
       {"worker_start_s", profile.startup.worker_start_s},
       {"elapsed_s", profile.elapsed_s}});
  const bool every_epoch = profile.epochs > 1 && profile.startup.later_epochs_s >= 0.3 * startup_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    const profile::Knob* knob = find_knob(op.knobs, "persistent_workers");
    if (!every_epoch || knob == nullptr || knob->value != 0) continue;
    Advice advice = in_words("keep the workers between epochs");
    advice.parameter = knob->parameter;
    advice.from = "False";
    advice.to = "True";
    finding.advice.push_back(std::move(advice));
    break;
  }
  return finding;
}

}  // namespace

extern const Cause kStartup;
const Cause kStartup{"startup", true, judge};

}  // namespace headrace::analysis
