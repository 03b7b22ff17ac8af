// An operator does not keep up. docs/verdicts/delivery_and_workers.md
#include <algorithm>
#include <charconv>
#include <cmath>

#include "headrace/analysis/verdict/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- serial_operator ---

/// A loader's sampler runs in the training loop's own thread, however many workers there are.
Finding drawing_indices(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  finding.headline = op.name + " draws indices in the training loop, which waits for it";
  finding.evidence = cause_evidence("drawing the indices of a batch takes " + duration(op.demand_s) +
                                        " of every step in the training loop's "
                                        "own thread; workers do not share that work",
                                    {{"demand_s", op.demand_s}, {"step_s", facts.gate.step_s}});
  Advice advice = in_words("draw the order once per epoch and only read it per batch, or make " + op.name +
                           " cheaper; predicted as if it cost nothing");
  finding.advice.push_back(
      with_prediction(std::move(advice), facts.gate.step_s,
                      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 1e-3}})));
  return finding;
}

// --- too_few_workers ---

/// More workers change the bound phases only; the prediction is for the whole run.
std::vector<Advice> advise_for_bound_part(const Case& facts) {
  const Intermittence& part = *facts.intermittent;
  profile::Profile bound = facts.profile;
  bound.sink.step_s = part.bound_step_s;
  bound.sink.compute_s = part.bound_compute_s;
  bound.operators[static_cast<std::size_t>(facts.candidate)].demand_s = part.bound_demand_s;
  std::vector<Advice> rows = advise_workers(*predictor_for(bound), facts.candidate);
  for (Advice& row : rows) {
    if (!row.predicted_step_s) continue;
    for (std::optional<double>* value : {&row.predicted_step_s, &row.low, &row.high}) {
      **value = part.bound_step_share * **value + (1 - part.bound_step_share) * part.calm_step_s;
    }
    row.speedup = facts.gate.step_s / *row.predicted_step_s;
    row.text += "; it helps in the part of the run that waits";
  }
  return rows;
}

/// Their number is the object's own parameter; what they do was not recorded, so nothing is predicted.
std::optional<Finding> own_workers_of(const Case& facts) {
  if (facts.candidate < 0 || !facts.waits_for_unseen()) return std::nullopt;
  const std::string own = setting(facts.profile, kOwnWorkers);
  const std::size_t equals = own.find('=');
  int now = 0;
  if (equals == std::string::npos) return std::nullopt;
  std::from_chars(own.data() + equals + 1, own.data() + own.size(), now);
  if (now < 1) return std::nullopt;
  const std::string kind = setting(facts.profile, kWaitsFor);
  const double alone_s = std::max(facts.gate.own_compute_s, 1e-6);
  const int enough = static_cast<int>(
      std::clamp(std::ceil(now * facts.gate.step_s / alone_s), now + 1.0, std::min(4.0 * now, 64.0)));
  Finding finding;
  finding.headline = facts.op().name + "'s own " + kind + " do not keep up";
  finding.evidence =
      cause_evidence("inside next() of " + facts.op().name + " the loop waits for its own " + kind +
                         "; it hardly computes there",
                     {{"own_workers", static_cast<double>(now)}, {"step_s", facts.gate.step_s}});
  Advice advice = in_words("let " + facts.op().name + " run " + std::to_string(enough) + " " + kind +
                           " instead of " + std::to_string(now) +
                           ", if cores are left for them; what they do was not recorded, so the "
                           "gain is not predicted: record another run and compare");
  advice.parameter = own.substr(0, equals);
  advice.from = static_cast<std::int64_t>(now);
  advice.to = static_cast<std::int64_t>(enough);
  finding.advice.push_back(std::move(advice));
  finding.certainty = kEstimated;  // that the workers are the limit follows from the loop's wait alone
  return finding;
}

}  // namespace

/// Workers of a stream have no data left, or none at all, while others still work.
std::optional<Finding> judge_shard_imbalance(const Case& facts) {
  if (facts.candidate < 0 || !facts.loader || !facts.loader->stream || facts.loader->workers < 2)
    return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  const profile::WorkerProfile* longest = nullptr;
  double out_s = 0;
  double least_s = facts.profile.elapsed_s;
  int without = 0;
  std::size_t workers = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    if (!worker.worker_id) continue;
    ++workers;
    out_s += worker.out_of_data_s;
    least_s = std::min(least_s, worker.out_of_data_s);
    without += worker.items == 0 ? 1 : 0;
    if (longest == nullptr || worker.out_of_data_s > longest->out_of_data_s) longest = &worker;
  }
  // A worker that never made an item has no row; those of earlier epochs have no number.
  const auto all = static_cast<std::size_t>(facts.loader->workers);
  const bool all_numbered =
      std::all_of(op.per_worker.begin(), op.per_worker.end(),
                  [](const profile::WorkerProfile& worker) { return worker.worker_id.has_value(); });
  const std::size_t absent = all_numbered && workers < all ? all - workers : 0;
  workers += absent;
  without += static_cast<int>(absent);
  out_s += static_cast<double>(absent) * facts.profile.elapsed_s;
  if (workers < 2 || longest == nullptr) return std::nullopt;
  // At the end of an epoch all of them are out of data, while the loop takes the last batches.
  out_s -= least_s * static_cast<double>(workers);
  const double share = ratio(out_s, facts.profile.elapsed_s * static_cast<double>(workers));
  if (share < facts.thresholds.shards.out_of_data_share) return std::nullopt;
  Finding finding;
  finding.headline = "workers of the stream run out of data while others still work";
  finding.evidence = cause_evidence(
      "workers had no data left for " + percent(share) + " of their time" +
          (longest->out_of_data_s > 0 ? ", " + longest->name + " for " + duration(longest->out_of_data_s) +
                                            " of " + duration(facts.profile.elapsed_s)
                                      : "") +
          (without > 0 ? "; " + counted(without, "worker") + " never had any" : ""),
      {{"out_of_data_share", share},
       {"longest_s", longest->out_of_data_s},
       {"workers_without_items", static_cast<double>(without)}});
  finding.advice.push_back(in_words(
      without > 0
          ? "split the data into at least " + as_written(static_cast<double>(workers)) + " shards, or use " +
                counted(static_cast<double>(workers) - without, "worker")
          : "make the shards equally large, or more and smaller, so that each worker gets the same amount"));
  if (const std::string how = where_to_set(*facts.profile.model, "buffer_size"); !how.empty())
    finding.advice.back().text += "; buffer_size: " + how;
  return finding;
}

/// Fast enough on average; buffers are too short for how much the service times vary.
std::optional<Finding> judge_variance(const Case& facts) {
  if (facts.candidate < 0 || facts.rate_bound() || facts.intermittent || facts.drain) return std::nullopt;
  const SegmentDemand* segment = facts.demand.of(facts.candidate);
  if (segment == nullptr || segment->in_sink || facts.op().fidelity == profile::Fidelity::inclusive)
    return std::nullopt;
  const double cv = std::max(facts.spread_per_batch(), compute_cv(facts.profile.sink));
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  const bool fast_enough = segment->demand_s <= facts.gate.own_compute_s;
  finding.headline = op.name + (fast_enough ? " is fast enough on average, but varies" : " varies") +
                     " more than the buffers bridge";
  char spread[32];
  std::snprintf(spread, sizeof spread, "%.2f", cv);
  const std::string demand = duration(segment->demand_s), step = duration(facts.gate.own_compute_s);
  const std::string means =
      fast_enough ? "no operator is slower than the training step (" + op.name + " " + demand + ", step " +
                        step + "), but times vary"
                  : op.name + " takes " + demand + " beside a training step of " + step + ", and times vary";
  finding.evidence =
      cause_evidence(means + " (spread " + spread + " of the mean per batch)",
                     {{"demand_s", segment->demand_s}, {"compute_s", facts.gate.own_compute_s}, {"cv", cv}});
  if (facts.interventions.known()) {
    finding.evidence.says +=
        "; simulated with even times, a step takes " + duration(facts.interventions.even_s);
    finding.evidence.figures["even_step_s"] = facts.interventions.even_s;
  }
  finding.advice = advise_capacity(facts.predictor, facts.candidate);
  if (!facts.interventions.known()) finding.certainty = kEstimated;
  return finding;
}

/// The operator that limits cannot be run more than once.
std::optional<Finding> judge_serial_operator(const Case& facts) {
  if (facts.candidate < 0 || facts.op().fidelity == profile::Fidelity::inclusive ||
      !cannot_be_multiplied(facts.op()))
    return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  if (op.kind == profile::OperatorKind::sampler) return drawing_indices(facts);
  Finding finding;
  finding.headline = op.name + " runs in one thread only and cannot keep up";
  finding.evidence =
      cause_evidence(op.name + " is a " + op.kind.text() + " in one thread, busy " +
                         percent(facts.utilisation) + " of the time; it has no worker parameter",
                     {{"utilisation", facts.utilisation}, {"demand_s", op.demand_s}});
  Advice advice = in_words("split " + op.name +
                           " into parts that are read side by side, cache what it makes, or move work "
                           "out of it into a map; predicted: split in two");
  finding.advice.push_back(
      with_prediction(std::move(advice), facts.gate.step_s,
                      facts.predictor.predict({{Change::Kind::kWorkers, facts.candidate, 2, 1}})));
  return finding;
}

/// Busy all the time, slower than the sink, and another worker would help.
std::optional<Finding> judge_too_few_workers(const Case& facts) {
  if (std::optional<Finding> own = own_workers_of(facts)) return own;
  if (facts.candidate < 0 || !facts.rate_bound()) return std::nullopt;
  const profile::OperatorProfile& op = facts.op();
  // A loader that shows one figure for itself and its inputs does not say what its workers do.
  if (op.fidelity == profile::Fidelity::inclusive) return std::nullopt;
  Finding finding;
  finding.headline = op.name + " has too few workers";
  finding.evidence =
      cause_evidence(op.name +
                         (op.workers == 1 ? "'s one worker is busy "
                                          : "'s " + as_written(op.workers) + " workers are busy ") +
                         percent(facts.utilisation) + " of the time, which sustains a step of " +
                         duration(facts.demand.of(facts.candidate)->demand_s) + " at best",
                     {{"workers", static_cast<double>(op.workers)},
                      {"utilisation", facts.utilisation},
                      {"pressure", facts.pressure}});
  finding.advice =
      facts.intermittent ? advise_for_bound_part(facts) : advise_workers(facts.predictor, facts.candidate);
  return finding;
}

}  // namespace headrace::analysis
