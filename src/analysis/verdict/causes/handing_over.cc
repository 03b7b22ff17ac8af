// Finished batches cost too much on their way to the loop or the device. docs/verdicts/delivery_and_workers.md
#include <algorithm>
#include <cmath>

#include "../search.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- handoff ---

/// A message of descriptors is some hundred bytes; from here on it is data that a pipe copies twice.
constexpr double kLargeMessage = 1e6;
/// Packing tensors takes under a millisecond; from here on it is objects.
constexpr double kSlowPickle_s = 3e-3;
/// From so many tensors on, their descriptors are what receiving takes (0.2 ms each, measured).
constexpr double kManyTensors = 3;
/// Receiving by name instead of by descriptor, measured: 0.21 of 0.59 ms with one tensor, 0.29 of 1.14
/// with 4.
constexpr double kByName = 0.35;

Evidence evidence_of(const Case& facts) {
  const double floor_s = facts.gate.handoff_share * facts.gate.step_s;
  Evidence evidence =
      cause_evidence("batches were ready, and still took " + duration(floor_s) + " of every step to fetch",
                     {{"handoff_floor_s", facts.profile.sink.handoff_floor_s},
                      {"ready_share", facts.profile.sink.ready_share}});
  if (facts.profile.handoff) {
    const profile::Handoff& handoff = *facts.profile.handoff;
    if (handoff.message_bytes >= kLargeMessage) {
      evidence.says += "; " + memory_size(handoff.message_bytes) + " of each go through a pipe (pickling " +
                       duration(handoff.pickle_s) + ", writing " + duration(handoff.send_s) + ", receiving " +
                       duration(handoff.receive_s) + ")";
    }
    evidence.figures["message_bytes"] = handoff.message_bytes;
    evidence.figures["tensors"] = handoff.tensors;
    evidence.figures["receive_cpu_s"] = handoff.receive_cpu_s;
  }
  if (facts.loader && facts.loader->workers > 0) {
    const double work_s = work_per_batch_s(facts.profile, *facts.loader);
    evidence.says += "; making one takes a worker " + duration(work_s);
    evidence.figures["work_s"] = work_s;
  }
  return evidence;
}

/// Pickling takes long, and it is not that of the tensors: each passes by a descriptor, in far less than its share.
bool pickles_objects(const profile::Handoff& handoff) {
  return handoff.pickle_cpu_s >= kSlowPickle_s * std::max(1.0, handoff.tensors / kManyTensors);
}

/// Cures for the measured message.
std::vector<Advice> cures(const Case& facts) {
  std::vector<Advice> advice;
  const std::optional<Loader>& loader = facts.loader;
  const bool large = facts.profile.handoff && facts.profile.handoff->message_bytes >= kLargeMessage;
  if (large) {
    advice.push_back(in_words("return tensors instead of arrays (" +
                              memory_size(facts.profile.handoff->message_bytes) +
                              " per batch go through a pipe): tensors pass through shared memory"));
  }
  const bool of_objects = facts.profile.handoff && pickles_objects(*facts.profile.handoff);
  if (of_objects && !large) {
    advice.push_back(in_words("pickling takes " + duration(facts.profile.handoff->pickle_cpu_s) +
                              " of CPU a batch, for " + memory_size(facts.profile.handoff->message_bytes) +
                              " of objects around its tensors: return a plain dict of tensors (dict(batch) "
                              "for a tokenizer's BatchEncoding)"));
  }
  if (loader && loader->workers > 0) {
    if (std::optional<Advice> fewer = advise_fewer_workers(*loader, facts.predictor)) {
      advice.push_back(std::move(*fewer));
    }
  }
  const bool many = facts.profile.handoff && facts.profile.handoff->tensors >= kManyTensors && !large;
  const profile::LoaderParameter* by_name =
      loader ? loader->parameter(profile::Quantity::passes_by_name) : nullptr;
  const bool by_descriptor = by_name != nullptr && by_name->choices.size() == 2 &&
                             profile::as_written(by_name->value) == by_name->choices.front();
  if (many && by_descriptor && loader->handoff >= 0) {
    Advice advised = in_words("share memory by name instead of by descriptor, of which " +
                              as_written(std::round(facts.profile.handoff->tensors)) +
                              " pass per batch; or return one packed tensor");
    advised.parameter = by_name->name;
    advised.from = by_name->value;
    advised.to = by_name->choices.back();
    const Prediction then = facts.predictor.predict({{Change::Kind::kService, loader->handoff, 1, kByName}});
    if (worth_it(facts.gate.step_s, then)) {
      advice.push_back(with_prediction(std::move(advised), facts.gate.step_s, then));
    }
  }
  const double floor_s = facts.gate.handoff_share * facts.gate.step_s;
  if (std::optional<Advice> ahead = advise_copying_ahead(facts.profile, floor_s, facts.gate.step_s))
    advice.push_back(std::move(*ahead));
  // Best first; what no parameter does, and large messages need before all else, stays where it is.
  std::stable_sort(advice.begin() + (large ? 1 : 0), advice.end(), [](const Advice& a, const Advice& b) {
    return a.predicted_step_s.value_or(1e9) < b.predicted_step_s.value_or(1e9);
  });
  // Objects cost what they hold, however many batches they are divided into.
  if (!large && !of_objects)
    advice.push_back(in_words("larger batches: the cost is per batch, not per item" +
                              (many ? "; or fewer, packed tensors in each, which has " +
                                          as_written(std::round(facts.profile.handoff->tensors)) + " now"
                                    : std::string())));
  return advice;
}

/// A thread of a loader that takes the batches of all its worker processes, one at a time.
Finding of_receiving_thread(const profile::OperatorProfile& op) {
  Finding finding;
  finding.op = op.name;
  finding.headline = "one thread receives the batches of all worker processes, and does not keep up";
  finding.evidence =
      cause_evidence("receiving a batch takes " + duration(op.demand_s) + ", one after the other",
                     {{"handoff_s", op.demand_s}});
  finding.advice.push_back(
      in_words("send less: smaller arrays (uint8 or float16 where float32 is not needed), or tensors instead "
               "of arrays, "
               "which pass through shared memory; more processes do not help"));
  return finding;
}

/// A pipeline's map whose items cross to worker processes and back: not the sink waits for what is ready, the
/// map's own threads are busy with copying.
Finding of_worker_processes(const Case& facts) {
  const profile::OperatorProfile& op = facts.op();
  const std::string map = op.name.substr(0, op.name.rfind('.'));
  double work_s = 0;
  for (const profile::OperatorProfile& each : facts.profile.operators) {
    if (each.name == map) work_s = each.demand_s;
  }
  Finding finding;
  finding.op = op.name;
  finding.headline =
      "handing items to the worker processes of " + map + " and back costs more than the work there";
  finding.evidence = cause_evidence(
      "passing items takes " + duration(op.demand_s) + " of every step, working on them " + duration(work_s),
      {{"handoff_s", op.demand_s}, {"work_s", work_s}});
  finding.advice.push_back(in_words("send less: smaller or fewer arrays, or the operators before and after " +
                                    map + " in the same function, so that items cross once"));
  finding.advice.push_back(in_words("threads pass items without a copy: executor='thread', where " + map +
                                    " releases the interpreter lock or does little"));
  return finding;
}

// --- transfer ---

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

/// Passing batches to the training loop costs more than making them is worth.
std::optional<Finding> judge_handoff(const Case& facts) {
  using enum profile::OperatorKind;
  const bool is_handoff = facts.candidate_is(handoff);
  if (!facts.gate.handoff_only && !is_handoff) return std::nullopt;
  if (facts.candidate_is(sampler) || facts.candidate_is(pin_memory)) return std::nullopt;
  if (!facts.loader && is_handoff) {
    const bool of_map = facts.op().name.find('.') != std::string::npos;
    return of_map ? of_worker_processes(facts) : of_receiving_thread(facts.op());
  }
  Finding finding;
  finding.op = is_handoff ? facts.op().name : "handoff";
  finding.headline =
      "handing over finished batches takes " + percent(facts.gate.handoff_share) + " of every step";
  finding.evidence = evidence_of(facts);
  finding.advice = cures(facts);
  finding.certainty = facts.profile.handoff ? 1 : kEstimated;
  return finding;
}

/// Getting batches to the device is what costs: copies that the step waits for, or the one thread that pins.
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
