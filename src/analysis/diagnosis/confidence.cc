#include "confidence.h"

#include <algorithm>

#include "headrace/analysis/diagnosis/disturbance.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

constexpr double kSurest = 0.98;

double enough_steps(const Case& facts) {
  return 0.7 + 0.3 * ramp(static_cast<double>(facts.gate.steps), 8, 60);
}

double undisturbed(const Case& facts) {
  return 1 - 0.4 * ramp(disturbance(facts.profile.host), kDisturbed, 0.4);
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
  if (asked < 2) return 0.85;
  return 0.6 + 0.4 * agree / asked;
}

}  // namespace

double confidence_when_healthy(const Case& facts) {
  double sure = kSurest * enough_steps(facts) * undisturbed(facts);
  sure *= 0.6 + 0.4 * ramp(facts.gate.distance, 0, 0.5);
  if (facts.gate.opaque && facts.gate.wait_share >= facts.thresholds.gate.starved_share) sure *= 0.75;
  return sure;
}

double confidence_when_bound(const Case& facts, const Diagnosis& diagnosis, double certainty) {
  double sure = kSurest * certainty * enough_steps(facts) * undisturbed(facts);
  if (facts.gate.state == Gate::State::kBound) sure *= 0.7 + 0.3 * facts.gate.distance;
  if (facts.drain) sure *= 0.75;  // what has not happened yet
  if (facts.gate.opaque) sure *= 0.75;
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
  if (facts.demand.segments.size() > 1) sure *= 0.75 + 0.25 * ramp(margin, 1.0, 1.25);
  // Just slower than the sink: a little noise would turn the verdict.
  if (rule == nullptr || !rule->fast_enough_on_average) {
    sure *= 0.75 + 0.25 * ramp(facts.pressure, 1.0, 1.2);
  }
  return sure;
}

}  // namespace headrace::analysis
