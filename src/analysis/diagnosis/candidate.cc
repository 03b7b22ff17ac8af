#include "candidate.h"

#include <algorithm>

#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Finished batches of a loader pass through its operator; its time is waiting as much as work. (The hand-off
/// of a pipeline's map to its worker processes is work of the map's threads.)
bool passes_on(const Case& facts, const SegmentDemand& segment) {
  return facts.loader && facts.profile.operators[static_cast<std::size_t>(segment.largest)].kind ==
                             profile::OperatorKind::handoff;
}

const SegmentDemand* workers_of(const Case& facts) {
  if (!facts.loader || facts.loader->workers == 0 || facts.loader->in_workers.empty()) return nullptr;
  return facts.demand.of(facts.loader->in_workers.front());
}

bool workers_limit(const Case& facts) {
  const SegmentDemand* workers = workers_of(facts);
  const CandidateThresholds& thresholds = facts.thresholds.candidate;
  return workers != nullptr && workers->utilisation >= thresholds.never_rest_share &&
         workers->demand_s >= facts.thresholds.rate.nearly_as_slow * facts.gate.own_compute_s;
}

/// The one thread that pins finished batches never rests.
bool pinning_limits(const Case& facts) {
  const SegmentDemand* pin = facts.loader ? facts.demand.of(facts.loader->pin) : nullptr;
  return pin != nullptr && pin->utilisation >= facts.thresholds.candidate.never_rest_share;
}

/// The hand-off is a candidate where it costs a good part of the step, more than batches that are not there,
/// and no busy worker explains it: a worker whose interpreter lock is taken is slow to pass on what it
/// finished.
bool handoff_may_limit(const Case& facts) {
  return facts.gate.floor_share >= facts.thresholds.gate.served_share &&
         facts.gate.floor_share >= facts.gate.starved_share && !workers_limit(facts) &&
         !pinning_limits(facts);
}

int by_demand(const Case& facts) {
  const bool handoff = handoff_may_limit(facts);
  if (handoff && facts.loader && facts.loader->handoff >= 0) return facts.loader->handoff;
  const SegmentDemand* first = nullptr;
  for (const SegmentDemand& segment : facts.demand.segments) {
    if (!handoff && passes_on(facts, segment)) continue;
    first = &segment;
    break;
  }
  if (first == nullptr) return facts.queues.op >= 0 ? facts.queues.op : facts.ledger.op;
  for (int other : {facts.queues.op, facts.ledger.op}) {
    const SegmentDemand* segment = facts.demand.of(other);
    if (segment == nullptr || segment == first || (!handoff && passes_on(facts, *segment))) continue;
    if (segment->demand_s >= facts.thresholds.candidate.tie * first->demand_s) return segment->largest;
  }
  return first->largest;
}

int copied_in_step(const profile::Profile& profile) {
  int found = -1;
  double most = 0;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (!runs_in_step(profile, static_cast<int>(i)) || profile.operators[i].demand_s <= most) continue;
    most = profile.operators[i].demand_s;
    found = static_cast<int>(i);
  }
  return found;
}

/// Where batches are ready: what the training loop's own thread spends its wait on.
int by_serving(const Case& facts) {
  if (facts.gate.transfer_only) return copied_in_step(facts.profile);
  if (!facts.loader) return facts.candidate;
  if (pinning_limits(facts)) return facts.loader->pin;
  // Drawing the next indices is part of GetNext too.
  if (facts.loader->sampler >= 0) {
    const double sampler_s =
        facts.profile.operators[static_cast<std::size_t>(facts.loader->sampler)].demand_s;
    if (sampler_s >= facts.thresholds.candidate.drawing_share * facts.gate.floor_share * facts.gate.step_s)
      return facts.loader->sampler;
  }
  return facts.loader->handoff;
}

/// The rules that look at finished batches only see them wait; a busy worker is why.
void charge_floor_to_workers(Case& facts) {
  facts.gate.handoff_only = false;
  facts.gate.floor_by_workers = true;
  const bool misled = facts.queues.op == facts.loader->handoff;
  if (misled) facts.queues = QueueOpinion{};
  if (facts.ledger.op == facts.loader->handoff) facts.ledger.op = -1;
}

}  // namespace

void point_at_candidate(Case& facts) {
  if (facts.gate.floor_share >= facts.thresholds.gate.served_share && workers_limit(facts))
    charge_floor_to_workers(facts);
  const bool served = facts.gate.handoff_only || facts.gate.transfer_only;
  // Where nothing that makes batches was recorded, what was recorded is not why they come late.
  const bool makers_unknown = facts.loader && facts.loader->workers > 0 && facts.loader->in_workers.empty();
  facts.candidate = facts.gate.crowded ? dearest_operator(facts.profile)
                    : served           ? by_serving(facts)
                    : makers_unknown   ? -1
                                       : by_demand(facts);
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  if (segment == nullptr) return;
  facts.intermittent =
      intermittence(facts.phases, facts.candidate, facts.shapes[static_cast<std::size_t>(facts.candidate)],
                    facts.thresholds.phases);
  double demand_s = segment->demand_s;
  double step_s = facts.gate.step_s;
  double compute_s = facts.gate.own_compute_s;
  if (facts.intermittent) {
    demand_s = facts.intermittent->bound_demand_s;
    step_s = facts.intermittent->bound_step_s;
    compute_s = facts.intermittent->bound_compute_s;
  }
  facts.utilisation = std::min(1.0, ratio(demand_s, step_s));
  facts.pressure = compute_s > 0 ? demand_s / compute_s : 100;
}

}  // namespace headrace::analysis
