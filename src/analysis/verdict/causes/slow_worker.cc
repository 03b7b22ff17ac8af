// One worker is slower than its siblings, by more than chance.
#include <algorithm>
#include <cmath>

#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Standard deviation / mean of a worker's items, at least: short runs of even items show less than there is.
constexpr double kMinSpread = 0.1;

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
  return std::max(kMinSpread, shape_of(alone).cv);
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
  double busy = 0;
  double items = 0;
  double variance = std::pow(own_cv(*slow.worker) * slow.mean_s, 2) / static_cast<double>(slow.worker->items);
  for (const profile::WorkerProfile* worker : judged) {
    if (worker == slow.worker) continue;
    busy += worker->service.mean_s * static_cast<double>(worker->items);
    items += static_cast<double>(worker->items);
  }
  slow.siblings = judged.size() - 1;
  slow.siblings_mean_s = busy / items;
  variance += std::pow(own_cv(*judged[slow.worker == judged[0] ? 1 : 0]) * slow.siblings_mean_s, 2) / items;
  const bool slower = slow.mean_s >= thresholds.slower * slow.siblings_mean_s;
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
  if (facts.candidate < 0) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const auto slow = slow_among(op.per_worker, facts.thresholds.worker);
  if (!slow) return std::nullopt;
  const double times = slow->mean_s / slow->siblings_mean_s;
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.1f", times);
  Finding finding;
  finding.headline = "one worker of " + op.name + " is " + factor + " times slower than the others";
  finding.evidence = cause_evidence(
      called(*slow->worker) + " takes " + duration(slow->mean_s) + " an item, its " +
          counted(static_cast<double>(slow->siblings), "sibling") + " " + duration(slow->siblings_mean_s),
      {{"worker_mean_s", slow->mean_s}, {"siblings_mean_s", slow->siblings_mean_s}, {"times", times}});
  Advice advice = in_words("look at " + called(*slow->worker) + " of " + op.name +
                           ": its storage, its core, its share of the data");
  const Prediction alike = facts.predictor.predict({{Change::Kind::kAlike, facts.candidate, 1, 1}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, alike));
  return finding;
}

}  // namespace headrace::analysis
