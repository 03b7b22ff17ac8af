// Worker start or first batches dominate a short run whose steady loop is healthy.
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// The loader could keep them, and does not.
bool workers_end_with_each_epoch(const Case& facts) {
  if (facts.loader) return facts.loader->num_workers > 0 && !facts.loader->persistent_workers;
  for (const profile::OperatorProfile& op : facts.profile.operators) {
    const profile::Knob* knob = find_knob(op.knobs, "persistent_workers");
    if (knob != nullptr) return knob->value == 0;
  }
  return false;
}

std::optional<Finding> judge(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const double startup_s =
      profile.startup.first_batch_s + profile.startup.later_epochs_s + profile.sink.worker_start_wait_s;
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
  if (every_epoch && workers_end_with_each_epoch(facts)) {
    Advice advice = in_words("keep the workers between epochs");
    advice.parameter = "persistent_workers";
    advice.from = false;
    advice.to = true;
    finding.advice.push_back(std::move(advice));
  }
  return finding;
}

}  // namespace

extern const Cause kStartup;
const Cause kStartup{"startup", true, judge, true};

}  // namespace headrace::analysis
