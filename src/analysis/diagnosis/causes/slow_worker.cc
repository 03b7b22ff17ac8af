// One worker is slower than its siblings, by more than chance.
#include <algorithm>
#include <cmath>

#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Standard deviation / mean of a worker's items, at least: short runs of even items show less than there is.
constexpr double kLeastSpread = 0.1;

struct Slow {
  const profile::WorkerProfile* worker = nullptr;
  std::size_t siblings = 0;
  double mean_s = 0;
  double siblings_mean_s = 0;
};

/// The spread of one worker's own items. The operator's would contain the difference that is looked for.
double own_cv(const profile::WorkerProfile& worker) {
  profile::OperatorProfile alone;
  alone.service = worker.service;
  alone.per_worker.push_back(worker);
  return std::max(kLeastSpread, shape_of(alone).cv);
}

std::optional<Slow> slow_among(const std::vector<profile::WorkerProfile>& workers,
                               const WorkerThresholds& thresholds) {
  std::vector<const profile::WorkerProfile*> judged;
  for (const profile::WorkerProfile& worker : workers) {
    if (static_cast<double>(worker.items) >= thresholds.fewest_items && worker.service.mean_s > 0)
      judged.push_back(&worker);
  }
  if (judged.size() < 2) return std::nullopt;
  const auto slowest = std::max_element(judged.begin(), judged.end(), [](const auto* a, const auto* b) {
    return a->service.p50_s < b->service.p50_s;
  });
  Slow slow;
  slow.worker = *slowest;
  slow.mean_s = slow.worker->service.mean_s;
  std::vector<double> medians;
  double busy = 0;
  double items = 0;
  double variance = std::pow(own_cv(*slow.worker) * slow.mean_s, 2) / static_cast<double>(slow.worker->items);
  for (const profile::WorkerProfile* worker : judged) {
    if (worker == slow.worker) continue;
    medians.push_back(worker->service.p50_s);
    busy += worker->service.mean_s * static_cast<double>(worker->items);
    items += static_cast<double>(worker->items);
  }
  slow.siblings = medians.size();
  slow.siblings_mean_s = busy / items;
  variance += std::pow(own_cv(*judged[slow.worker == judged[0] ? 1 : 0]) * slow.siblings_mean_s, 2) / items;
  // Against the next slowest: where two of four are slow, none of them is the odd one out.
  const double next = *std::max_element(medians.begin(), medians.end());
  const bool slower = slow.mean_s >= thresholds.slower * slow.siblings_mean_s &&
                      slow.worker->service.p50_s >= thresholds.median_slower * next;
  const bool beyond = slow.mean_s - slow.siblings_mean_s >= thresholds.beyond_chance * std::sqrt(variance);
  return slower && beyond ? std::optional(slow) : std::nullopt;
}

/// "worker 2 (part 3 of 4 of the stream)"
std::string called(const profile::WorkerProfile& worker) {
  const std::string name = worker.worker_id ? std::to_string(*worker.worker_id) : worker.name;
  return "worker " + name + (worker.shard.empty() ? "" : " (part " + worker.shard + " of the stream)");
}

}  // namespace

std::optional<Finding> judge_slow_worker(const Case& facts) {
  const auto& ops = facts.profile.operators;
  const WorkerThresholds& thresholds = facts.thresholds.worker;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const SegmentDemand* segment = facts.demand.of(static_cast<int>(i));
    // The operator has to matter: one that could feed the sink twice over is not what it waits for.
    if (segment == nullptr || segment->demand_s < thresholds.matters * facts.demand.first().demand_s)
      continue;
    if (ops[i].demand_s < thresholds.part_of_thread * segment->demand_s) continue;
    const auto slow = slow_among(ops[i].per_worker, thresholds);
    if (!slow) continue;
    const double times = slow->mean_s / slow->siblings_mean_s;
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.1f", times);
    Finding finding;
    finding.op = ops[i].name;
    finding.headline = "one worker of " + ops[i].name + " is " + factor + " times slower than the others";
    finding.evidence = cause_evidence(
        called(*slow->worker) + " takes " + duration(slow->mean_s) + " an item, its " +
            counted(static_cast<double>(slow->siblings), "sibling") + " " + duration(slow->siblings_mean_s),
        {{"worker_mean_s", slow->mean_s}, {"siblings_mean_s", slow->siblings_mean_s}, {"times", times}});
    Advice advice = in_words("look at " + called(*slow->worker) + " of " + ops[i].name +
                             ": its storage, its core, its share of the data");
    const double factor_then =
        ratio(slow->siblings_mean_s, std::max(ops[i].service.mean_s, slow->siblings_mean_s));
    const Prediction then =
        facts.predictor.predict({{Change::Kind::kAlike, static_cast<int>(i), 1, factor_then}});
    finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
    return finding;
  }
  return std::nullopt;
}

}  // namespace headrace::analysis
