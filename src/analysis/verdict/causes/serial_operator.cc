// The operator that limits cannot be run more than once.
#include "sentences.h"

namespace headrace::analysis {
namespace {

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

}  // namespace

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

}  // namespace headrace::analysis
