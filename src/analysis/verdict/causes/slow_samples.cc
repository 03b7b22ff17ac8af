// Delivery waits for rare items of another kind; the usual items would be fast enough.
#include <algorithm>

#include "headrace/analysis/verdict/loader_advice.h"
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

/// Items that find no core, or the interpreter lock taken, are slow, whatever is in them. (The first product: what slow
/// items take more than usual ones, of the busy time.)
bool others_slow_them(const profile::OperatorProfile& op, const ServiceShape& shape,
                      const TailThresholds& thresholds) {
  const double excess = shape.tail_busy_share * (1 - ratio(shape.median_s, shape.tail_mean_s));
  const double waits_s = op.run_queue_wait_s.value_or(0) + op.lock_wait_s.value_or(0);
  return ratio(waits_s, op.busy_s) >= thresholds.waits * excess;
}

/// Without them, the wait is mostly gone; where that cannot be simulated, the time in them comes to most of it.
bool explain_the_wait(const Case& facts, const ServiceShape& shape, const Prediction& usual) {
  if (usual.known && facts.interventions.known())
    return facts.interventions.gain_of(usual.step_s) >= kMostOf * facts.interventions.gain_of_all();
  const double slow_s = facts.op().demand_s * shape.tail_busy_share * facts.op().workers;
  return slow_s >= kMostOf * facts.gate.starved_share * facts.gate.step_s;
}

}  // namespace

std::optional<Finding> judge_slow_samples(const Case& facts) {
  if (facts.candidate < 0 || facts.lock.contended) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const ServiceShape& shape = facts.shapes[static_cast<std::size_t>(facts.candidate)];
  // An opaque loader's own waits come in bursts; that says nothing about its items.
  if (!shape.heavy_tailed(facts.thresholds.tail) || op.fidelity == profile::Fidelity::inclusive ||
      others_slow_them(op, shape, facts.thresholds.tail))
    return std::nullopt;
  const Prediction usual = facts.predictor.predict({{Change::Kind::kUsual, facts.candidate, 1, 1}});
  if (!explain_the_wait(facts, shape, usual)) return std::nullopt;
  Finding finding;
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
  for (Advice& advice : advise_capacity(facts.predictor, facts.candidate)) {
    finding.advice.push_back(std::move(advice));
  }
  Advice fix = in_words("make the slow items as cheap as the others, or leave them out" + listed(op));
  finding.advice.push_back(with_prediction(std::move(fix), facts.gate.step_s, usual));
  return finding;
}

}  // namespace headrace::analysis
