#include "diagnosis_steps.h"

#include <algorithm>

#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

int index_of(const profile::Profile& profile, const std::string& name) {
  const auto& operators = profile.operators;
  const auto at = std::find_if(operators.begin(), operators.end(),
                               [&](const profile::OperatorProfile& op) { return op.name == name; });
  return at == operators.end() ? -1 : static_cast<int>(at - operators.begin());
}

/// One operator, or two that share threads.
bool same_place(const Case& facts, int a, int b) {
  const SegmentDemand* segment = facts.demand.of(a);
  return a == b || (segment != nullptr && segment == facts.demand.of(b));
}

std::string without(const Case& facts, int op) {
  return "without " + facts.profile.operators[static_cast<std::size_t>(op)].name + " a step takes " +
         duration(facts.interventions.without_s[static_cast<std::size_t>(op)]);
}

/// Why the verdict is another one than what the queues name. `op`: the verdict's.
std::string why_not(const Case& facts, const Diagnosis& diagnosis, int op) {
  const int queues = facts.queues.op;
  if (!is_bound(diagnosis.kind)) return "the training loop does not wait for it";
  if (op < 0) return "";
  const std::string name =
      "the verdict names " + facts.profile.operators[static_cast<std::size_t>(op)].name + ": ";
  if (queues >= 0 && facts.interventions.gain(op) > facts.interventions.gain(queues))
    return name + "simulated " + without(facts, op) + ", " + without(facts, queues);
  if (facts.lock.contended) return name + "who waits for the interpreter lock seems slow";
  if (facts.loader && (op == facts.loader->handoff || op == facts.loader->pin || op == facts.loader->sampler))
    return name + "what handing batches over costs is in no queue's level";
  return name + (queues < 0 ? "times vary more than the queues' mean levels show"
                            : "the cause is found in its items and workers, not in levels");
}

}  // namespace

std::optional<QueueRule> rule_of_queues(const profile::Profile& profile, const QueueOpinion& queues) {
  if (queues.evidence.says.empty()) return std::nullopt;
  QueueRule rule;
  if (queues.op >= 0) rule.op = profile.operators[static_cast<std::size_t>(queues.op)].name;
  rule.left = queues.left;
  rule.right = queues.right;
  rule.says = queues.evidence.says;
  return rule;
}

void compare_with_queues(const Case& facts, Diagnosis& diagnosis) {
  std::optional<QueueRule> found = rule_of_queues(facts.profile, facts.queues);
  if (!found) return;
  QueueRule& rule = *found;
  const int op = diagnosis.op ? index_of(facts.profile, *diagnosis.op) : -1;
  const bool bound = is_bound(diagnosis.kind);
  rule.agrees =
      facts.queues.op < 0 ? !bound || op < 0 : bound && (op < 0 || same_place(facts, facts.queues.op, op));
  if (!rule.agrees) {
    const std::string why = "; " + why_not(facts, diagnosis, op);
    rule.says += why;
    for (Evidence& each : diagnosis.evidence) {
      if (each.rule == Rule::queues && !facts.drain) each.says += why;
    }
  }
  diagnosis.queue_rule = std::move(found);
}

}  // namespace headrace::analysis
