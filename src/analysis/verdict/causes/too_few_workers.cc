// Busy all the time, slower than the sink, and another worker would help.
#include <charconv>
#include <cmath>

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

/// Their number is the object's own parameter; what they do was not recorded, so nothing is predicted.
std::optional<Finding> own_workers_of(const Case& facts) {
  if (facts.candidate < 0 || !facts.waits_for_unseen()) return std::nullopt;
  const std::string own = setting(facts.profile, kOwnWorkers);
  const std::size_t equals = own.find('=');
  int now = 0;
  if (equals == std::string::npos) return std::nullopt;
  std::from_chars(own.data() + equals + 1, own.data() + own.size(), now);
  if (now < 1) return std::nullopt;
  const std::string kind = setting(facts.profile, kWaitsFor);
  const double alone_s = std::max(facts.gate.own_compute_s, 1e-6);
  const int enough = static_cast<int>(
      std::clamp(std::ceil(now * facts.gate.step_s / alone_s), now + 1.0, std::min(4.0 * now, 64.0)));
  Finding finding;
  finding.headline = facts.op().name + "'s own " + kind + " do not keep up";
  finding.evidence =
      cause_evidence("inside next() of " + facts.op().name + " the loop waits for its own " + kind +
                         "; it hardly computes there",
                     {{"own_workers", static_cast<double>(now)}, {"step_s", facts.gate.step_s}});
  Advice advice = in_words("let " + facts.op().name + " run " + std::to_string(enough) + " " + kind +
                           " instead of " + std::to_string(now) +
                           ", if cores are left for them; what they do was not recorded, so the "
                           "gain is not predicted: record another run and compare");
  advice.parameter = own.substr(0, equals);
  advice.from = static_cast<std::int64_t>(now);
  advice.to = static_cast<std::int64_t>(enough);
  finding.advice.push_back(std::move(advice));
  finding.certainty = kEstimated;  // that the workers are the limit follows from the loop's wait alone
  return finding;
}

}  // namespace

std::optional<Finding> judge_too_few_workers(const Case& facts) {
  if (std::optional<Finding> own = own_workers_of(facts)) return own;
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
