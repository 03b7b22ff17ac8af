// Worker start or first batches dominate a short run whose steady loop is healthy.
#include "../first_draw.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Share of the start-up that the starts of workers in later epochs must have: workers that stay save no more.
constexpr double kEveryEpoch = 0.3;

/// The parameter that would keep the workers between epochs, where they could be kept and are not; else "".
std::string keeps_workers(const Case& facts) {
  constexpr auto kKeeps = profile::Quantity::keeps_workers;
  if (facts.loader) {
    const profile::LoaderParameter* parameter = facts.loader->parameter(kKeeps);
    const bool could = parameter != nullptr && facts.loader->workers > 0 && !facts.loader->keeps_workers;
    return could ? parameter->name : "";
  }
  for (const profile::OperatorProfile& op : facts.profile.operators) {
    const profile::Parameter* parameter = parameter_that_sets(op.parameters, kKeeps);
    if (parameter != nullptr) return parameter->value == 0 ? parameter->parameter : "";
  }
  return "";
}

}  // namespace

std::optional<Finding> judge_startup(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const double startup_s =
      profile.startup.first_batch_s + profile.startup.later_epochs_s + profile.sink.worker_start_wait_s;
  if (facts.gate.state != Gate::State::kHealthy || startup_s < profile.elapsed_s) return std::nullopt;
  Finding finding;
  finding.headline = "start-up took longer than the training loop itself";
  finding.evidence = cause_evidence(
      "starting took " + duration(startup_s) + ", all steps together " + duration(profile.elapsed_s),
      {{"startup_s", startup_s},
       {"worker_start_s", profile.startup.worker_start_s},
       {"elapsed_s", profile.elapsed_s}});
  if (const FirstDraw draw = first_draw_of(profile, startup_s); !draw.sampler.empty()) {
    finding.op = draw.sampler;
    finding.headline =
        "drawing the order of an epoch takes " + duration(draw.seconds) + " in " + draw.sampler;
    finding.evidence.says +=
        "; " + draw.sampler + " took " + duration(draw.seconds) + " for the first draw of an epoch";
    finding.evidence.figures["first_draw_s"] = draw.seconds;
    finding.advice.push_back(in_words(cure_of(draw)));
    return finding;
  }
  const double restarts_s = profile.startup.worker_start_s * (static_cast<double>(profile.epochs) - 1);
  const std::string parameter = keeps_workers(facts);
  if (restarts_s > 0 && restarts_s >= kEveryEpoch * startup_s && !parameter.empty()) {
    Advice advice = in_words("keep the workers between epochs: from start to first request they took " +
                             duration(profile.startup.worker_start_s));
    advice.parameter = parameter;
    advice.from = false;
    advice.to = true;
    finding.advice.push_back(std::move(advice));
  }
  return finding;
}

}  // namespace headrace::analysis
