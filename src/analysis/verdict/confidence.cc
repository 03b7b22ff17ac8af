// How likely the same program, recorded again, gets the same answer: the answer's distance from the next one, in what
// equal runs differ by.
#include "diagnosis_steps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../read/numbers.h"
#include "headrace/analysis/read/cores.h"

namespace headrace::analysis {
namespace {

/// No recording contains everything that a second one would.
constexpr double kSurest = 0.98;
/// Standard deviation between equal runs of the logarithm of a share near its threshold (docs/benchmarks.md: their steps
/// differ by up to 11.5 %, which is more of a wait), and of the ratio of two operators' demands.
constexpr double kSharesDiffer = 0.3;
constexpr double kDemandsDiffer = 0.1;

/// Probability that a normal variable keeps its sign.
double keeps_sign(double mean, double deviation) {
  return 0.5 * std::erfc(-mean / (deviation * std::numbers::sqrt2));
}

/// Laplace's rule of succession: the next one is like all of these.
double after(double count) { return (count + 1) / (count + 2); }

/// Whether the waits are this run's own: the logarithm of the part of the cores that others left.
double by_others(const profile::Host& host) { return -std::log(1 - std::min(0.9, disturbance(host))); }

double same_kind(const Case& facts, double times_limit) {
  const double share = std::log(std::max(times_limit, 1e-6));
  const double deviation =
      std::hypot(kSharesDiffer, facts.gate.error_of_limit, by_others(facts.profile.host));
  return keeps_sign(std::abs(share), deviation) * after(static_cast<double>(facts.gate.steps));
}

/// How much shorter a step is without the candidate than without any operator of other threads; where that cannot be
/// simulated, how much larger its demand is.
double same_operator(const Case& facts) {
  const SegmentDemand* own = facts.demand.of(facts.candidate);
  if (own == nullptr) return 1;
  double ahead = std::log(ratio(own->demand_s, facts.demand.second_s()));
  if (facts.interventions.gains(facts.candidate)) {
    const std::vector<double>& without_s = facts.interventions.without_s;
    double next_s = facts.interventions.as_is_s;
    for (int op = 0; static_cast<std::size_t>(op) < without_s.size(); ++op) {
      if (!contains(own->operators, op)) next_s = std::min(next_s, without_s[static_cast<std::size_t>(op)]);
    }
    ahead = std::max(ahead, std::log(next_s / without_s[static_cast<std::size_t>(facts.candidate)]));
  }
  const bool alone = facts.demand.segments.size() < 2;
  return alone ? 1 : keeps_sign(ahead, std::hypot(kDemandsDiffer, by_others(facts.profile.host)));
}

}  // namespace

double confidence_when_healthy(const Case& facts) {
  const double limit = facts.thresholds.gate.starved_share;
  // Waits that are cut to multiples of a part of the step may be longer by it.
  const double cut = ratio(facts.profile.sink.wait_resolution_s.value_or(0), facts.gate.step_s);
  const double sure = kSurest * same_kind(facts, facts.gate.times_limit + 0.5 * cut / limit);
  return facts.gate.opaque && facts.gate.wait_share >= limit ? kEstimated * sure : sure;
}

double confidence_when_bound(const Case& facts, const Diagnosis& diagnosis, double certainty) {
  double sure = kSurest * certainty;
  if (facts.gate.state == Gate::State::kBound) sure *= same_kind(facts, facts.gate.times_limit);
  if (facts.drain || facts.gate.opaque) sure *= kEstimated;
  // Levels of queues that were read at times are less than busy times.
  if (const auto samples = level_samples(facts.profile))
    sure *= kEstimated * after(static_cast<double>(*samples));
  const CauseRule* rule = diagnosis.cause ? &rule_of(*diagnosis.cause) : nullptr;
  const bool by_demand = diagnosis.op && facts.candidate >= 0 && *diagnosis.op == facts.op().name &&
                         (rule == nullptr || !rule->found_without_demand);
  // Fetching and copying are measured in the training loop itself.
  const bool served = facts.gate.transfer_only || facts.gate.handoff_only;
  return by_demand && !served ? sure * same_operator(facts) : sure;
}

}  // namespace headrace::analysis
