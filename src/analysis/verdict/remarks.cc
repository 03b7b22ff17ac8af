#include "diagnosis_steps.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/verdict/plan.h"
#include "headrace/analysis/words.h"
#include "long_steps.h"

namespace headrace::analysis {

void add_evidence(const Case& facts, Diagnosis& diagnosis) {
  diagnosis.evidence.push_back(facts.gate.evidence);
  if (facts.gate.state == Gate::State::kBound && !facts.drain && !facts.queues.evidence.says.empty()) {
    diagnosis.evidence.push_back(facts.queues.evidence);
  }
  if (!facts.demand.empty()) diagnosis.evidence.push_back(facts.demand.evidence);
  if (facts.gate.state == Gate::State::kBound && !facts.ledger.evidence.says.empty()) {
    diagnosis.evidence.push_back(facts.ledger.evidence);
  }
  if (facts.drain) {
    const std::string name =
        in_a_sentence(facts.profile.queues[static_cast<std::size_t>(facts.drain->queue)]);
    char levels[64];
    std::snprintf(levels, sizeof levels, "%.1f to %.1f", facts.drain->first_mean, facts.drain->last_mean);
    diagnosis.evidence.push_back(
        {Rule::queues,
         name + " still hides it: it went from " + levels + " items, and once it is empty every step waits",
         {{"first_mean", facts.drain->first_mean}, {"last_mean", facts.drain->last_mean}}});
  }
}

void add_machine(const Case& facts, Diagnosis& diagnosis) {
  const profile::Host& host = facts.profile.host;
  Evidence evidence;
  evidence.rule = Rule::machine;
  evidence.says = host.cores > 0 ? counted(host.cores, "core") : "number of cores unknown";
  evidence.figures["cores"] = host.cores;
  if (const std::string all = setting(facts.profile, kMachineCores); !all.empty())
    evidence.says += " of the machine's " + all + " (CPU affinity)";
  if (host.cpu_share) {
    evidence.says += "; this run used " + percent(*host.cpu_share) + " of them";
    evidence.figures["cpu_share"] = *host.cpu_share;
  }
  if (host.foreign_cpu_share) {
    evidence.says += ", others " + percent(*host.foreign_cpu_share);
    evidence.figures["foreign_cpu_share"] = *host.foreign_cpu_share;
  }
  if (host.throttled_share) {
    evidence.says += *host.throttled_share > 0.005
                         ? "; the quota stopped it for " + percent(*host.throttled_share)
                         : "; no throttling";
    evidence.figures["throttled_share"] = *host.throttled_share;
  }
  const double startup_s = facts.profile.startup.first_batch_s + facts.profile.startup.later_epochs_s;
  if (startup_s > 0) {
    evidence.says += "; start-up " + duration(startup_s) + " (not counted)";
    evidence.figures["startup_s"] = startup_s;
  }
  diagnosis.evidence.push_back(std::move(evidence));
}

void add_waiting_rank(const Case& facts, Diagnosis& diagnosis) {
  const auto& ranks = facts.profile.ranks;
  const auto& slow = facts.profile.slow_ranks;
  const auto worst = std::find_if(ranks.begin(), ranks.end(), [&](const auto& each) {
    return each.starved_share >= facts.thresholds.gate.starved_share &&
           std::find(slow.begin(), slow.end(), each.rank) != slow.end();
  });
  if (worst == ranks.end()) return;
  diagnosis.evidence.push_back(
      {Rule::ranks,
       "rank " + std::to_string(worst->rank) + " starves for " + percent(worst->starved_share) +
           " of its time" + (worst->op.empty() ? "" : ", mostly in " + worst->op) +
           "; where the ranks meet at every step, this one waits for it inside its own step",
       {{"rank", static_cast<double>(worst->rank)}, {"starved_share", worst->starved_share}}});
}

void add_handing_thread(const Case& facts, Diagnosis& diagnosis) {
  if (diagnosis.kind == VerdictKind::not_input_bound)
    diagnosis.summary = "the thread that hands its batches on waits for the training loop";
  diagnosis.evidence.push_back(
      {Rule::detail,
       "a thread iterates this loader and hands its batches on: the waits are that thread's, and its compute "
       "is "
       "the time until there was room for a batch; the training step itself was not recorded",
       {{"wait_share", facts.gate.wait_share}}});
}

void add_undivided(const Case& facts, Diagnosis& diagnosis) {
  if (!facts.loader || !diagnosis.op) return;
  bool is_source = false;
  for (int i : facts.loader->in_workers) {
    const profile::OperatorProfile& op = facts.profile.operators[static_cast<std::size_t>(i)];
    if (op.kind == profile::OperatorKind::map) return;
    is_source = is_source || (op.kind == profile::OperatorKind::source && op.name == *diagnosis.op);
  }
  if (!is_source) return;
  diagnosis.evidence.push_back(
      {Rule::detail,
       "no transform was found in " + *diagnosis.op +
           ", so all that its items take is one figure; @hr.operator on the functions that it calls (read, "
           "decode, augment) tells them apart",
       {}});
}

void add_functions(const profile::Profile& profile, Diagnosis& diagnosis) {
  if (!diagnosis.op) return;
  const auto op =
      std::find_if(profile.operators.begin(), profile.operators.end(),
                   [&](const profile::OperatorProfile& each) { return each.name == *diagnosis.op; });
  if (op == profile.operators.end() || op->functions.empty()) return;
  std::string text;
  for (const profile::FunctionShare& function : op->functions) {
    text += (text.empty() ? "" : ", ") + percent(function.share) +
            (text.empty() ? " of its time in " : " in ") + function.name;
  }
  diagnosis.evidence.push_back(
      {Rule::functions, "in a few batches that were sampled, " + op->name + " spent " + text, {}});
}

void add_long_steps(const Case& facts, Diagnosis& diagnosis) {
  const bool is_cause = diagnosis.cause == Cause::pauses;
  const std::optional<LongSteps> found =
      is_cause ? std::nullopt : long_steps(facts.profile, facts.thresholds.pauses);
  if (found) diagnosis.evidence.push_back({Rule::detail, in_words(*found), figures_of(*found)});
}

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
  if (!facts.loader || facts.intermittent || diagnosis.kind == VerdictKind::not_input_bound ||
      diagnosis.cause == Cause::shard_imbalance)  // its workers without data take nothing
    return;
  const bool gains = std::any_of(diagnosis.advice.begin(), diagnosis.advice.end(),
                                 [](const Advice& advice) { return advice.predicted_step_s.has_value(); });
  if (gains) return;
  std::optional<Advice> fewer = advise_fewer_workers(*facts.loader, facts.predictor);
  if (!fewer || !fewer->predicted_step_s) return;
  std::erase_if(diagnosis.advice, [&](const Advice& each) { return each.parameter == fewer->parameter; });
  diagnosis.advice.insert(diagnosis.advice.begin(), std::move(*fewer));
}

}  // namespace headrace::analysis
