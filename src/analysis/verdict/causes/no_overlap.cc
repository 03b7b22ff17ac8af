// Loading runs in the training loop's own thread: each step pays for both.
#include <algorithm>
#include <cmath>

#include "../../handoff_costs.h"
#include "../search.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// No number means no advice if a hand-off costs as much as overlapping could save.
void drop_unpredicted(std::vector<Advice>& advice) {
  std::erase_if(advice, [](const Advice& each) { return !each.predicted_step_s; });
}

/// Workers that pass plain batches, if those gain, where pickling the objects around a batch's tensors would
/// cost more than workers save.
std::vector<Advice> with_plain_batches(const Case& facts) {
  constexpr double kLight_s = 1e-3;
  const std::optional<profile::HandoffEstimate>& sampled = facts.profile.handoff_estimate;
  if (!sampled || sampled->pickle_cpu_s < kLight_s) return {};
  profile::Profile plain = facts.profile;
  plain.handoff_estimate->pickle_cpu_s = 0;
  std::vector<Advice> rows = advise_workers(*predictor_for(plain), facts.candidate);
  drop_unpredicted(rows);
  const std::string batch = facts.loader->batch;
  for (Advice& row : rows) {
    row.text = "first return " +
               (batch.empty() ? "fewer, packed tensors, in plain containers"
                              : "dict(batch) instead of the " + batch) +
               " from the collate function, because pickling each batch would take " +
               duration(sampled->pickle_cpu_s) + "; then " + row.text;
  }
  return rows;
}

/// A loader whose workers are its own number: the fewest that keep up with the sink, as far as cores allow.
Advice with_workers(const Case& facts, const profile::Parameter& parameter, double demand_s) {
  const double needed = std::ceil(ratio(demand_s, std::max(facts.gate.own_compute_s, 1e-4)));
  const int fewest = std::max(1, static_cast<int>(parameter.min.value_or(1)));
  const double most = parameter.max.value_or(kMaxAdvisedWorkers);
  const int enough = std::max(fewest, static_cast<int>(std::min(needed, most)));
  const auto with = [&](int to) {
    return std::vector<Change>{{Change::Kind::kWorkers, facts.candidate, to, 1}};
  };
  const std::optional<Choice> found = cheapest(facts.predictor, numbers(fewest, enough), with);
  const int workers = found ? found->value : enough;
  Advice advice = in_words("load in " + counted(workers, "worker") + " beside the training loop");
  advice.parameter = parameter.parameter;
  advice.from = static_cast<std::int64_t>(parameter.value);
  // The user's own value: 1 may mean the loop, too.
  const profile::LoaderParameter* written = parameter_of(facts.profile, profile::Quantity::workers);
  if (written != nullptr && written->name == parameter.parameter) advice.from = written->value;
  advice.to = workers;
  advice.changes = with(workers);
  return found ? with_prediction(std::move(advice), facts.gate.step_s, found->then) : advice;
}

/// A loader with workers, and what finishes their batches in the loop.
Advice into_workers(const Case& facts) {
  Advice advice =
      in_words("run " + facts.op().name +
               " in the workers (as a transform of the dataset, or by the loader's own option), or "
               "make it cheaper; predicted as if it cost nothing");
  return with_prediction(std::move(advice), facts.gate.step_s,
                         facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 1e-3}}));
}

}  // namespace

std::optional<Finding> judge_no_overlap(const Case& facts) {
  if (facts.candidate < 0) return std::nullopt;
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  // Indices are drawn in the training loop whatever the loader does.
  if (segment == nullptr || !segment->in_sink || facts.candidate_is(profile::OperatorKind::sampler))
    return std::nullopt;
  if (facts.waits_for_unseen()) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  finding.headline = op.name + " runs inside the training loop, which waits for it";
  finding.evidence =
      cause_evidence("loading takes " + duration(segment->demand_s) +
                         " of every step in the training loop's "
                         "own thread, its compute " +
                         duration(facts.gate.own_compute_s),
                     {{"in_sink_s", segment->demand_s}, {"compute_s", facts.gate.own_compute_s}});
  if (facts.loader && facts.loader->workers > 0) {
    finding.advice.push_back(into_workers(facts));
    drop_unpredicted(finding.advice);
    return finding;
  }
  if (facts.loader) {
    finding.advice = advise_workers(facts.predictor, facts.candidate);
    if (finding.advice.empty()) finding.advice = with_plain_batches(facts);
    if (segment->demand_s <= kProcessHandoff_s) drop_unpredicted(finding.advice);
    return finding;
  }
  const profile::Parameter* parameter = parameter_that_sets(op.parameters, profile::Quantity::workers);
  if (parameter != nullptr) {
    finding.advice.push_back(with_workers(facts, *parameter, segment->demand_s));
    return finding;
  }
  Advice advice =
      in_words("load in a background thread that keeps 2 batches ready" +
               std::string(facts.lock.lock_share >= 0.5 ? " (a process: it is pure Python)" : ""));
  advice.code =
      "import headrace as hr\n# batches: what the loop iterates over now\n"
      "for batch in hr.pipeline.source(batches).prefetch(2): ...";
  advice.parameter = "prefetch";
  advice.from = 0;
  advice.to = 2;
  advice.changes = {{Change::Kind::kPrefetch, facts.candidate, 2, 1}};
  const Prediction then = facts.predictor.predict(advice.changes);
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
  // A thread overlaps the shorter of both.
  const double overlapped_s = std::min(segment->demand_s, facts.gate.own_compute_s);
  if (overlapped_s <= kThreadHandoff_s) drop_unpredicted(finding.advice);
  return finding;
}

}  // namespace headrace::analysis
