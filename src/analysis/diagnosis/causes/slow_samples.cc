// Delivery waits for rare items of another kind; the usual items would be fast enough.
#include <algorithm>

#include "headrace/analysis/diagnosis/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

std::string listed(const profile::OperatorProfile& op) {
  std::vector<profile::ServiceSample> slowest;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    slowest.insert(slowest.end(), worker.slowest.begin(), worker.slowest.end());
  }
  std::sort(
      slowest.begin(), slowest.end(),
      [](const profile::ServiceSample& a, const profile::ServiceSample& b) { return a.wall_s > b.wall_s; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, slowest.size()); ++i) {
    text += (i == 0 ? " (slowest: item " : ", item ") + std::to_string(slowest[i].index) + " " +
            duration(slowest[i].wall_s);
  }
  return text.empty() ? text : text + ")";
}

/// Of an operator's busy time: what its slow items take more than usual ones would.
double excess(const ServiceShape& shape) {
  return shape.tail_busy_share * (1 - ratio(shape.median_s, shape.tail_mean_s));
}

/// Items that find no core, or the interpreter lock taken, are slow, whatever is in them.
bool others_slow_them(const profile::OperatorProfile& op, const ServiceShape& shape,
                      const TailThresholds& thresholds) {
  const double waits_s = op.run_queue_wait_s.value_or(0) + op.lock_wait_s.value_or(0);
  return ratio(waits_s, op.busy_s) >= thresholds.waits * excess(shape);
}

int slow_sample_operator(const Case& facts) {
  const TailThresholds& thresholds = facts.thresholds.tail;
  int found = -1;
  double most = 0;
  for (const SegmentDemand& segment : facts.demand.segments) {
    for (int i : segment.operators) {
      const ServiceShape& shape = facts.shapes[static_cast<std::size_t>(i)];
      const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(i)];
      // An opaque loader's own waits come in bursts; that says nothing about its items.
      if (!shape.heavy_tailed(thresholds) || op.fidelity == profile::Fidelity::inclusive ||
          others_slow_them(op, shape, thresholds))
        continue;
      const double demand_s = op.demand_s;
      const double usual_s = segment.demand_s - demand_s * shape.tail_busy_share;
      const double tail_s = demand_s * shape.tail_busy_share * op.workers;
      const bool long_enough = shape.tail_mean_s >= facts.gate.own_compute_s;
      if (usual_s > thresholds.usual_keep_up *
                        std::max(facts.gate.own_compute_s, thresholds.of_step * facts.gate.step_s) ||
          !long_enough)
        continue;
      if (tail_s < thresholds.explains * facts.gate.starved_share * facts.gate.step_s || tail_s <= most)
        continue;
      most = tail_s;
      found = i;
    }
  }
  return found;
}

}  // namespace

std::optional<Finding> judge_slow_samples(const Case& facts) {
  const int index = slow_sample_operator(facts);
  if (index < 0 || facts.lock.contended) return std::nullopt;
  // Another operator that never rests is the limit, slow samples here or not.
  const SegmentDemand& first = facts.demand.first();
  if (facts.demand.of(index) != &first && first.utilisation > facts.thresholds.rate.sets_pace_share)
    return std::nullopt;
  const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(index)];
  const ServiceShape& shape = facts.shapes[static_cast<std::size_t>(index)];
  Finding finding;
  finding.op = op.name;
  finding.headline = "delivery waits for rare slow items in " + op.name;
  finding.evidence =
      cause_evidence(percent(shape.tail_item_share) + " of the items take " + duration(shape.tail_mean_s) +
                         ", the usual one " + duration(shape.median_s) + "; they are " +
                         percent(shape.tail_busy_share) + " of " + op.name + "'s work",
                     {{"slow_item_share", shape.tail_item_share},
                      {"slow_mean_s", shape.tail_mean_s},
                      {"median_s", shape.median_s},
                      {"slow_busy_share", shape.tail_busy_share}});
  if (facts.loader) {
    if (std::optional<Advice> advice = advise_any_order(*facts.loader, facts.predictor)) {
      finding.advice.push_back(std::move(*advice));
    }
  }
  for (Advice& advice : advise_capacity(facts.predictor, index)) {
    finding.advice.push_back(std::move(advice));
  }
  const double without = 1 - excess(shape);
  Advice fix = in_words("make the slow items as cheap as the others, or leave them out" + listed(op));
  finding.advice.push_back(
      with_prediction(std::move(fix), facts.gate.step_s,
                      facts.predictor.predict({{Change::Kind::kService, index, 1, without}})));
  return finding;
}

}  // namespace headrace::analysis
