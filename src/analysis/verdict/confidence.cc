#include "confidence.h"

#include <algorithm>

#include "../read/numbers.h"
#include "headrace/analysis/read/disturbance.h"

namespace headrace::analysis {
namespace {

// docs/verdicts.md, "How sure", is this table in words; docs/benchmarks.md says how often verdicts of each
// confidence were right.
constexpr double kSurest = 0.98;
/// Steady steps: a run barely long enough, and one that no longer is better for more.
constexpr double kFewSteps = 8;
constexpr double kManySteps = 60;
constexpr double kOfFewSteps = 0.7;
/// Cores that others took (disturbance.h), from kDisturbed on.
constexpr double kVeryDisturbed = 0.4;
constexpr double kOfDisturbed = 0.6;
/// At the gate itself; half of it away, a healthy run is as sure as it gets.
constexpr double kOfBoundAtGate = 0.7;
constexpr double kOfHealthyAtGate = 0.6;
constexpr double kFarFromGate = 0.5;
/// Queues, demand and ledger: none names the operator, or only one of them could speak.
constexpr double kOfDisagreement = 0.6;
constexpr double kOfOneOpinion = 0.85;
/// Demand at a tie with the next operator's, or with the step's compute; from these ratios on it is clear.
constexpr double kOfTie = 0.75;
constexpr double kClearMargin = 1.25;
constexpr double kClearPressure = 1.2;
/// What has not happened yet, and loaders that show nothing of their inside.
constexpr double kOfForeseen = 0.75;
constexpr double kOfOpaque = 0.75;
/// Levels of queues that were read at times say less than busy times, the less the fewer there are.
constexpr double kOfSamples = 0.85;
constexpr double kOfFewSamples = 0.6;
constexpr double kFewSamples = 8;
constexpr double kManySamples = 40;
/// Waits that are cut to multiples of a part of the step may be longer by it.
constexpr double kOfCutWaits = 0.7;
constexpr double kCutShort = 0.04;
constexpr double kCutLong = 0.25;

/// 1 from `to` on, `least` up to `from`.
double factor(double least, double value, double from, double to) {
  return least + (1 - least) * ramp(value, from, to);
}

double enough_steps(const Case& facts) {
  return factor(kOfFewSteps, static_cast<double>(facts.gate.steps), kFewSteps, kManySteps);
}

double enough_samples(const Case& facts) {
  const std::optional<std::uint64_t> samples = level_samples(facts.profile);
  if (!samples) return 1;
  return kOfSamples * factor(kOfFewSamples, static_cast<double>(*samples), kFewSamples, kManySamples);
}

/// Of a loop that seems not to wait.
double measured_finely(const Case& facts) {
  const double cut = ratio(facts.profile.sink.wait_resolution_s.value_or(0), facts.gate.step_s);
  return 1 - (1 - kOfCutWaits) * ramp(cut, kCutShort, kCutLong);
}

double undisturbed(const Case& facts) {
  return 1 - (1 - kOfDisturbed) * ramp(disturbance(facts.profile.host), kDisturbed, kVeryDisturbed);
}

/// Queues, demand and ledger name the same operator (or one of its thread).
double agreement(const Case& facts) {
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  int agree = segment != nullptr && segment == &facts.demand.first() ? 1 : 0;
  int asked = facts.demand.empty() ? 0 : 1;
  for (int other : {facts.queues.op, facts.ledger.op}) {
    if (other < 0) continue;
    ++asked;
    agree += other == facts.candidate || (segment != nullptr && facts.demand.of(other) == segment) ? 1 : 0;
  }
  if (asked < 2) return kOfOneOpinion;
  return kOfDisagreement + (1 - kOfDisagreement) * agree / asked;
}

}  // namespace

double confidence_when_healthy(const Case& facts) {
  double sure = kSurest * enough_steps(facts) * undisturbed(facts) * measured_finely(facts);
  sure *= factor(kOfHealthyAtGate, facts.gate.distance, 0, kFarFromGate);
  if (facts.gate.opaque && facts.gate.wait_share >= facts.thresholds.gate.starved_share) sure *= kOfOpaque;
  return sure;
}

double confidence_when_bound(const Case& facts, const Diagnosis& diagnosis, double certainty) {
  double sure = kSurest * certainty * enough_steps(facts) * enough_samples(facts) * undisturbed(facts);
  if (facts.gate.state == Gate::State::kBound) sure *= factor(kOfBoundAtGate, facts.gate.distance, 0, 1);
  if (facts.drain) sure *= kOfForeseen;
  if (facts.gate.opaque) sure *= kOfOpaque;
  const CauseRule* rule = diagnosis.cause ? &rule_of(*diagnosis.cause) : nullptr;
  const bool by_demand = diagnosis.op && facts.candidate >= 0 && *diagnosis.op == facts.op().name &&
                         (rule == nullptr || !rule->found_without_demand);
  // What fetching or copying costs is measured in the training loop itself; queues and demand have no say in
  // it.
  const bool served = facts.gate.transfer_only || facts.gate.handoff_only;
  if (!by_demand || served) return sure;
  sure *= agreement(facts);
  const double margin =
      ratio(facts.demand.empty() ? 0 : facts.demand.first().demand_s, facts.demand.second_s());
  if (facts.demand.segments.size() > 1) sure *= factor(kOfTie, margin, 1, kClearMargin);
  // Just slower than the sink: a little noise would turn the verdict.
  if (rule == nullptr || !rule->fast_enough_on_average) {
    sure *= factor(kOfTie, facts.pressure, 1, kClearPressure);
  }
  return sure;
}

}  // namespace headrace::analysis
