#include "diagnosis_steps.h"

#include <algorithm>
#include <vector>

#include "../read/numbers.h"
#include "search.h"

namespace headrace::analysis {
namespace {

using enum profile::OperatorKind;

/// Finished batches pass through it on their way to the training loop. (The hand-off of a pipeline's map to its
/// worker processes is work of the map's threads.)
bool hands_over(const Case& facts, int op) {
  return facts.loader && facts.profile.operators[static_cast<std::size_t>(op)].kind == handoff;
}

/// Between the workers and the training loop: what it costs is no sign of what the workers do.
bool behind_workers(const Case& facts, int op) {
  return hands_over(facts, op) || op == facts.loader->pin || op == facts.loader->sampler;
}

/// Handing batches over is part of making them, unless it costs more than a healthy loop pays, and more than batches
/// that are not finished.
bool may_limit(const Case& facts, int op) {
  return !hands_over(facts, op) || (facts.gate.handoff_share >= facts.thresholds.gate.served_share &&
                                    facts.gate.handoff_share >= facts.gate.starved_share);
}

/// The operator whose absence gains most. Where several gain nearly as much: the one that the queues name, else the
/// largest demand.
int by_absence(const Case& facts) {
  const auto without_s = [&](int op) { return facts.interventions.without_s[static_cast<std::size_t>(op)]; };
  double shortest_s = facts.interventions.as_is_s;
  std::vector<int> gaining;
  for (int op = 0; static_cast<std::size_t>(op) < facts.profile.operators.size(); ++op) {
    if (!facts.interventions.gains(op) || !may_limit(facts, op)) continue;
    gaining.push_back(op);
    shortest_s = std::min(shortest_s, without_s(op));
  }
  std::erase_if(gaining, [&](int op) { return !as_short(without_s(op), shortest_s); });
  if (gaining.empty()) return -1;
  if (contains(gaining, facts.queues.op)) return facts.queues.op;
  const std::vector<double> demands = own_demands(facts.profile);
  return *std::max_element(gaining.begin(), gaining.end(), [&](int a, int b) {
    return demands[static_cast<std::size_t>(a)] < demands[static_cast<std::size_t>(b)];
  });
}

double demand_s(const Case& facts, int op) {
  return facts.profile.operators[static_cast<std::size_t>(op)].demand_s;
}

/// Choice without a simulation.
int by_demand(const Case& facts) {
  if (facts.gate.handoff_only && facts.loader) {
    int most = facts.loader->handoff;
    for (int op : {facts.loader->pin, facts.loader->sampler}) {
      if (op >= 0 && (most < 0 || demand_s(facts, op) > demand_s(facts, most))) most = op;
    }
    return most;
  }
  for (const SegmentDemand& segment : facts.demand.segments) {
    if (!hands_over(facts, segment.largest)) return segment.largest;
  }
  for (int op : {facts.queues.op, facts.ledger.op}) {
    if (op >= 0 && may_limit(facts, op)) return op;
  }
  return -1;
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

int candidate_of(const Case& facts) {
  if (facts.gate.transfer_only) return copied_in_step(facts.profile);
  // The recorded operators are not why batches come late if none of them makes batches.
  const bool makers_unknown = facts.loader && facts.loader->workers > 0 && facts.loader->in_workers.empty();
  if (makers_unknown && !facts.gate.handoff_only) return -1;
  const int op = by_absence(facts);
  return op >= 0 ? op : by_demand(facts);
}

}  // namespace

void point_at_candidate(Case& facts) {
  facts.candidate = candidate_of(facts);
  if (facts.gate.handoff_only && facts.loader && facts.candidate >= 0 &&
      !behind_workers(facts, facts.candidate)) {
    // Finished batches wait because busy workers are slow to pass them on.
    facts.gate.handoff_only = false;
    facts.gate.floor_by_workers = true;
  }
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
