// Getting batches to the device is what costs: copies that the step waits for, or the one thread that pins.
#include "sentences.h"

namespace headrace::analysis {
namespace {

bool on_a_device(const Loader& loader) {
  return !loader.device.empty() && loader.device.rfind("cpu", 0) != 0;
}

Finding copies(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  finding.headline =
      "copying batches to the device takes " + percent(facts.gate.transfer_share) + " of every step";
  finding.evidence = cause_evidence(op.name + " takes " + duration(op.demand_s) + " of a step of " +
                                        duration(facts.gate.step_s) + ", and nothing else runs beside it",
                                    {{"transfer_s", op.demand_s}, {"step_s", facts.gate.step_s}});
  const profile::LoaderParameter* pins =
      facts.loader ? facts.loader->parameter(profile::Quantity::pins) : nullptr;
  if (pins != nullptr && !facts.loader->pins && on_a_device(*facts.loader)) {
    Advice advice = in_words(
        "pin the batches and copy them without waiting: copies from pageable memory are "
        "staged, and block");
    advice.parameter = pins->name;
    advice.from = false;
    advice.to = true;
    finding.advice.push_back(std::move(advice));
  }
  finding.advice.push_back(in_words(
      "copy the next batch while this one is computed, or copy fewer bytes (convert and normalise on "
      "the device)"));
  return finding;
}

Finding pinning(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  finding.headline = op.name + "'s one thread cannot keep up";
  finding.evidence =
      cause_evidence("pinning a batch takes " + duration(op.demand_s) + ", in one thread that is busy " +
                         percent(facts.utilisation) + " of the time",
                     {{"demand_s", op.demand_s}, {"utilisation", facts.utilisation}});
  Advice advice =
      in_words("pin fewer bytes (smaller types, conversion on the device); predicted: half of them");
  const Prediction then = facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 0.5}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
  return finding;
}

/// The copy is an operator of its own and overlaps with the step, but takes longer than it.
Finding copying_beside(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  Finding finding;
  finding.headline =
      "copying a batch to the device takes " + duration(op.demand_s) + ", longer than the step";
  finding.evidence = cause_evidence(op.name + " copies one batch after the other and is busy " +
                                        percent(facts.utilisation) + " of the time",
                                    {{"demand_s", op.demand_s}, {"utilisation", facts.utilisation}});
  if (op.transfer) {
    const profile::Transfer& copies = *op.transfer;
    finding.evidence.figures["bytes"] = static_cast<double>(copies.bytes);
    finding.evidence.figures["buffer_wait_s"] = copies.buffer_wait_s;
    if (copies.bytes_per_s) finding.evidence.figures["bytes_per_s"] = *copies.bytes_per_s;
    if (copies.pinned_share && *copies.pinned_share < 0.5) {
      finding.advice.push_back(
          in_words("copy from page-locked memory (pin=True): copies from pageable memory are staged"));
    }
  }
  Advice fewer = in_words(
      "copy fewer bytes (smaller types; convert and normalise on the device); predicted: half of them");
  finding.advice.push_back(
      with_prediction(std::move(fewer), facts.gate.step_s,
                      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 0.5}})));
  return finding;
}

}  // namespace

std::optional<Finding> judge_transfer(const Case& facts) {
  if (facts.candidate >= 0 && facts.op().kind == profile::OperatorKind::transfer &&
      !facts.gate.transfer_only && (facts.gate.handoff_only || facts.rate_bound()))
    return copying_beside(facts);
  if (facts.gate.transfer_only && facts.candidate >= 0) return copies(facts);
  if (facts.candidate_is(profile::OperatorKind::pin_memory) &&
      (facts.gate.handoff_only || facts.rate_bound()))
    return pinning(facts);
  return std::nullopt;
}

}  // namespace headrace::analysis
