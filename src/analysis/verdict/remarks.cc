#include "diagnosis_steps.h"

#include <algorithm>
#include <cstdio>

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

}  // namespace headrace::analysis
