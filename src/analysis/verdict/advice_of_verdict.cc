#include "diagnosis_steps.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "copy_ahead.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/verdict/memory.h"
#include "headrace/analysis/verdict/plan.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {

void add_undivided_stream(const Case& facts, Diagnosis& diagnosis) {
  if (!facts.loader || !facts.loader->stream || facts.loader->workers < 2 ||
      setting(facts.profile, kEachWorkerReads) != "all")
    return;
  const std::string workers = as_written(facts.loader->workers);
  diagnosis.evidence.push_back(
      {Rule::detail,
       "the stream made its first batches without asking which worker it runs in, so each of the " + workers +
           " workers reads all of it: an epoch is " + workers + " times as long, and every row comes " +
           workers + " times, unless the stream draws rows at random",
       {{"workers", static_cast<double>(facts.loader->workers)}}});
  if (is_bound(diagnosis.kind)) {
    diagnosis.summary = "each of the " + workers + " workers reads the whole stream";
    diagnosis.cause.reset();
  }
  const profile::LoaderParameter* parameter = facts.loader->parameter(profile::Quantity::workers);
  std::erase_if(diagnosis.advice, [&](const Advice& each) {
    return parameter != nullptr && each.parameter == parameter->name;
  });
  Advice divide;
  const std::string& how = facts.loader->shard_advice;
  divide.text = (how.empty() ? "give each worker its own part of the stream" : how) +
                "; until then, more workers only repeat rows";
  diagnosis.advice.insert(diagnosis.advice.begin(), std::move(divide));
}

void add_where_to_set(const Case& facts, Diagnosis& diagnosis) {
  if (!facts.profile.model) return;
  const std::string made_at = setting(facts.profile, kMadeAt);
  for (Advice& advice : diagnosis.advice) {
    if (profile::parameter_named(*facts.profile.model, advice.parameter) == nullptr) continue;
    const std::string where = where_to_set(*facts.profile.model, advice.parameter);
    if (!where.empty()) {
      advice.text += "; " + where;
    } else if (!made_at.empty()) {
      advice.text += "; in " + made_at;
    }
  }
}

void add_device_gap(const Case& facts, Diagnosis& diagnosis) {
  const std::optional<double> gap_s = device_gap_s(facts.profile, facts.thresholds.gate);
  if (!gap_s) return;
  std::optional<Advice> advice = advise_copying_ahead(facts.profile, *gap_s, facts.gate.step_s);
  if (!advice) return;
  diagnosis.evidence.push_back({Rule::detail,
                                "the device waits " + duration(*gap_s) +
                                    " between two steps although batches are ready: for their copies, or for "
                                    "the training loop's own work",
                                {{"gap_s", *gap_s}}});
  diagnosis.advice.push_back(std::move(*advice));
  add_where_to_set(facts, diagnosis);
}

void add_plan(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.advice.empty() || facts.intermittent) return;
  const Advice& first = diagnosis.advice.front();
  const bool starts_one = std::any_of(first.changes.begin(), first.changes.end(), [](const Change& change) {
    return change.kind == Change::Kind::kWorkers || change.kind == Change::Kind::kPrefetch;
  });
  if (!starts_one || !first.after.empty() || !first.predicted_step_s) return;
  std::vector<Advice> plan = plan_after(facts.predictor, {first});
  diagnosis.advice.insert(diagnosis.advice.begin() + 1, std::make_move_iterator(plan.begin()),
                          std::make_move_iterator(plan.end()));
}

void add_memory(const Case& facts, Diagnosis& diagnosis) {
  constexpr double kWorthAWord = 1e6;
  for (Advice& advice : diagnosis.advice) {
    advice.memory_bytes = more_memory(facts.profile, advice.changes);
    if (advice.memory_bytes.value_or(0) >= kWorthAWord) {
      advice.text += "; up to " + memory_size(*advice.memory_bytes) + " more wait in memory";
    }
  }
}

void add_how_to_measure(const Case& facts, Diagnosis& diagnosis) {
  const profile::Host& host = facts.profile.host;
  const auto first = std::find_if(diagnosis.advice.begin(), diagnosis.advice.end(),
                                  [](const Advice& each) { return !each.parameter.empty(); });
  if (first == diagnosis.advice.end() || disturbance(host) < kDisturbed) return;
  first->text += "; headrace tune SCRIPT measures it beside the other processes, which use " +
                 percent(host.foreign_cpu_share.value_or(0)) + " of the cores";
}

void add_fewer_workers(const Case& facts, Diagnosis& diagnosis) {
  if (!facts.loader || facts.intermittent || diagnosis.kind == VerdictKind::not_input_bound) return;
  const bool gains = std::any_of(diagnosis.advice.begin(), diagnosis.advice.end(),
                                 [](const Advice& advice) { return advice.predicted_step_s.has_value(); });
  if (gains) return;
  std::optional<Advice> fewer = advise_fewer_workers(*facts.loader, facts.predictor);
  if (!fewer || !fewer->predicted_step_s) return;
  std::erase_if(diagnosis.advice, [&](const Advice& each) { return each.parameter == fewer->parameter; });
  diagnosis.advice.insert(diagnosis.advice.begin(), std::move(*fewer));
}

}  // namespace headrace::analysis
