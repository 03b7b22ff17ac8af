#include "headrace/analysis/verdict/diagnose.h"

#include <algorithm>
#include <utility>

#include "../read/device_lag.h"
#include "../read/numbers.h"
#include "diagnosis_steps.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/causes/cause.h"
#include "headrace/analysis/verdict/loader_advice.h"
#include "headrace/analysis/words.h"
#include "long_steps.h"

namespace headrace::analysis {
namespace {

/// profile: the predictor's, or the same as its device sees it.
Case examine(const profile::Profile& profile, const Predictor& predictor, const Thresholds& thresholds) {
  const InterpreterLock lock = read_interpreter_lock(profile, thresholds.lock);
  Case facts{.profile = profile,
             .predictor = predictor,
             .thresholds = thresholds,
             .loader = loader_of(profile),
             .gate = judge_gate(profile, lock, thresholds.gate),
             .lock = lock,
             .shapes = {},
             .demand = {},
             .queues = {},
             .ledger = {},
             .phases = {},
             .intermittent = {},
             .drain = {},
             .interventions = {},
             .more = {}};
  if (facts.gate.state == Gate::State::kUnmeasurable) return facts;
  note_device_lag(predictor.profile().sink, facts.gate);
  for (const profile::OperatorProfile& op : profile.operators) facts.shapes.push_back(shape_of(op));
  facts.demand = rank_demand(profile, facts.gate.step_s);
  facts.queues = judge_queues(profile, thresholds.candidate);
  facts.ledger = judge_ledger(profile);
  facts.phases = phases_of(profile, thresholds);
  if (facts.gate.state == Gate::State::kBound) facts.interventions = try_interventions(predictor);
  point_at_candidate(facts);
  facts.more = try_more_workers(predictor, facts.interventions, facts.candidate);
  return facts;
}

/// The first cause that applies; both null if none does.
std::pair<const CauseRule*, std::optional<Finding>> find_cause(const Case& facts, bool bound) {
  const bool served = facts.gate.handoff_only || facts.gate.transfer_only;
  for (const CauseRule& rule : causes_in_order()) {
    if (!bound && !rule.otherwise_healthy) continue;
    if (bound && served && !rule.judged_when_served) continue;
    if (bound && facts.gate.loop_waits_for_core && !rule.judged_when_loop_waits_for_core) continue;
    if (bound && !rule.otherwise_healthy && facts.demand.empty() && !served) continue;
    if (std::optional<Finding> finding = rule.judge(facts)) return {&rule, std::move(finding)};
  }
  return {nullptr, std::nullopt};
}

/// Busy workers pass finished batches on late, too: the hand-off's part of the wait is theirs.
bool passes_on_late(const Case& facts) {
  return facts.loader && facts.loader->handoff >= 0 && contains(facts.loader->in_workers, facts.candidate);
}

/// Share of the wait charged to the operator, or to one that shares its thread (which has the batch at the
/// moment does not show which holds it up). Below 0: not known.
double charged_to(const Case& facts, const std::string& name) {
  const auto& ops = facts.profile.operators;
  const auto at = std::find_if(ops.begin(), ops.end(),
                               [&](const profile::OperatorProfile& op) { return op.name == name; });
  const SegmentDemand* segment =
      at == ops.end() ? nullptr : facts.demand.of(static_cast<int>(at - ops.begin()));
  const double alone = charged_share(facts.profile, name);
  if (segment == nullptr || segment->in_sink || alone < 0) return alone;
  double sum = 0;
  for (int i : segment->operators) {
    sum += charged_share(facts.profile, ops[static_cast<std::size_t>(i)].name);
  }
  if (passes_on_late(facts))
    sum += std::max(0.0,
                    charged_share(facts.profile, ops[static_cast<std::size_t>(facts.loader->handoff)].name));
  return std::min(sum, 1.0);
}

double share_of_step(const Case& facts, const std::optional<std::string>& op) {
  if (facts.lock.contended) return facts.gate.input_share;
  if (facts.gate.loop_waits_for_core) return facts.gate.input_share;
  if (facts.gate.handoff_only) return facts.gate.handoff_share;
  if (facts.gate.transfer_only) return facts.gate.transfer_share;
  if (facts.gate.floor_by_workers) return facts.gate.wait_share;
  const double charged = op ? charged_to(facts, *op) : -1;
  // A ledger with little to say about it would hide what the gate has seen.
  const bool known = charged >= 0 && facts.ledger.known_share >= kMostOf;
  return (known ? charged * facts.gate.wait_share : facts.gate.starved_share) + facts.gate.stretch_share;
}

std::optional<std::string> next_limit(const Case& facts, const Diagnosis& diagnosis) {
  const bool advised = !diagnosis.advice.empty() && diagnosis.advice.front().predicted_step_s.has_value();
  if (advised && diagnosis.advice.front().then_limit == "cpu") {
    const int most_cpu = operator_with_most_cpu(facts.profile);
    if (most_cpu < 0) return std::nullopt;
    return facts.profile.operators[static_cast<std::size_t>(most_cpu)].name;
  }
  if (advised && !diagnosis.advice.front().then_limit.empty()) return diagnosis.advice.front().then_limit;
  Prediction then;
  if (facts.candidate >= 0) {
    // The limit after the candidate: an infinitely fast one shows it.
    then = facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, 1e-3}});
  }
  if (!then.known || then.limit.empty() || then.limit == "cpu") return std::nullopt;
  return then.limit;
}

/// A healthy loop that mostly waits for cores which other processes have. "": it does not.
std::string held_up_by_others(const Case& facts) {
  const profile::Host& host = facts.profile.host;
  if (!others_have_the_cores(host)) return "";
  const double step_s = facts.gate.step_s;
  const double for_core_s =
      facts.gate.core_wait_share * step_s + facts.profile.sink.compute_core_wait_s.value_or(0);
  if (for_core_s < facts.thresholds.gate.starved_share * step_s) return "";
  return "other processes hold the cores: they use " + percent(*host.foreign_cpu_share) + " of " +
         counted(host.cores, "core") + ", and the training loop waits " + duration(for_core_s) + " of " +
         duration(step_s) + " for one";
}

void conclude_healthy(const Case& facts, Diagnosis& diagnosis) {
  diagnosis.kind = VerdictKind::not_input_bound;
  diagnosis.confidence = confidence_when_healthy(facts);
  const std::string waited = duration(facts.gate.wait_share * facts.gate.step_s) + " of " +
                             duration(facts.gate.step_s) + ", " + percent(facts.gate.wait_share) + ")";
  // A large wait beside "not input-bound" needs its reason in the same line.
  const double noticeable = facts.thresholds.gate.starved_share;
  const bool receives = facts.gate.handoff_share >= noticeable && facts.gate.starved_share < noticeable;
  diagnosis.summary =
      receives ? "the training step is the limit; batches were ready (receiving them took " + waited
               : "the training step is the limit (waited " + waited;
  if (facts.gate.device_lag_s >= noticeable * facts.gate.step_s) {
    diagnosis.summary = "the device is the limit: it still works while the training loop waits (" +
                        duration(facts.gate.device_lag_s) + " of " + duration(facts.gate.step_s) + ")";
  }
  if (const std::string others = held_up_by_others(facts); !others.empty()) diagnosis.summary = others;
  if (const std::string growth = growing_steps(facts.profile); !growth.empty()) diagnosis.summary = growth;
  add_waiting_rank(facts, diagnosis);
  const auto [rule, finding] = find_cause(facts, false);
  if (rule != nullptr) {
    diagnosis.cause = rule->cause;
    diagnosis.summary = finding->headline;
    diagnosis.evidence.push_back(finding->evidence);
    diagnosis.advice = finding->advice;
    add_where_to_set(facts, diagnosis);
  } else {
    add_device_gap(facts, diagnosis);
  }
  // Levels of queues say how long operators are at work at least, so nothing of what they could do.
  if (!facts.demand.empty() && !level_samples(facts.profile)) {
    diagnosis.headroom_step_s = facts.demand.first().demand_s;
    if (facts.profile.host.cores > 0) {
      diagnosis.headroom_step_s =
          std::max(*diagnosis.headroom_step_s, input_cpu_s(facts.profile) / facts.profile.host.cores);
    }
  }
}

/// The loop waits in the object's own next(), and hardly computes there: nothing says for what.
void conclude_unseen(const Case& facts, Diagnosis& diagnosis) {
  const profile::OperatorProfile& op = facts.op();
  const double computes = std::max(0.0, cpu_bound_share(op));
  const std::string waits_for = setting(facts.profile, kWaitsFor);
  diagnosis.summary = "the training loop waits for " + (waits_for.empty() ? "something" : waits_for) +
                      (waits_for.empty() ? " that was not recorded" : " that were not recorded");
  Evidence evidence{Rule::cause,
                    "the loop's thread used a core for " + percent(computes) +
                        " of the time that it spent in " + op.name + ", so " + op.name +
                        " waits there: for " +
                        (waits_for.empty() ? "threads or processes of its own, or for storage"
                                           : waits_for + " that were not recorded"),
                    {{"cpu_share", computes}, {"in_sink_s", op.demand_s}}};
  if (const double others_s = pool_cpu_s(facts.profile); others_s > 0) {
    evidence.says += "; threads that were not recorded computed for " + duration(others_s) + " a step";
    evidence.figures["unseen_cpu_s"] = others_s;
  }
  diagnosis.evidence.push_back(std::move(evidence));
  diagnosis.reason = "what runs behind " + op.name +
                     " is not in the recording; mark its parts with hr.operator and hr.Queue, or use "
                     "headrace run, to see them";
}

/// Another rank makes this one's batches and sends them: what it waits for is in that rank's recording.
void conclude_elsewhere(const Case& facts, const std::string& rank, Diagnosis& diagnosis) {
  diagnosis.summary = "the training loop waits for " + rank + ", which makes the batches of all ranks";
  diagnosis.reason = "the report of " + rank + " says what holds them up: headrace report RUN --" + rank;
  diagnosis.evidence.push_back({Rule::cause, "this rank's own loader is never asked for a batch", {}});
  diagnosis.share_of_step = facts.gate.wait_share;
  diagnosis.confidence = confidence_when_bound(facts, diagnosis, 1);
}

/// Why a loop that waits gets no advice.
std::string why_no_advice(const Case& facts) {
  const Prediction as_is = facts.predictor.predict({});
  if (!as_is.known) return "what a change would gain is unknown: " + as_is.why_not;
  const double others = facts.profile.host.foreign_cpu_share.value_or(0);
  return "no parameter gains 5 %" + (has_neighbours(facts.profile.host)
                                         ? " while other processes use " + percent(others) + " of the cores"
                                         : std::string());
}

/// The loop's own process waited for what it reads, and has not since: a cache was filled.
bool waited_at_first(const Case& facts) {
  return facts.intermittent && facts.intermittent->calm_from_s > 0 && facts.loader &&
         facts.loader->workers == 0;
}

void conclude_bound(const Case& facts, Diagnosis& diagnosis) {
  diagnosis.kind = facts.intermittent ? VerdictKind::intermittent : VerdictKind::input_bound;
  if (const std::string rank = setting(facts.profile, kBatchesFrom); !rank.empty())
    return conclude_elsewhere(facts, rank, diagnosis);
  const auto [rule, finding] = find_cause(facts, true);
  if (rule == nullptr && facts.waits_for_unseen()) {
    conclude_unseen(facts, diagnosis);
  } else if (rule == nullptr) {
    if (facts.candidate >= 0) diagnosis.op = facts.op().name;
    diagnosis.summary = diagnosis.op ? "the training loop waits for " + *diagnosis.op
                                     : "the training loop waits for its input";
    if (!diagnosis.op)
      diagnosis.reason = "nothing inside the loader was recorded, so no operator can be named";
    diagnosis.evidence.push_back({Rule::cause, "no known cause explains it", {}});
  } else {
    diagnosis.cause = rule->cause;
    if (rule->otherwise_healthy) diagnosis.kind = VerdictKind::not_input_bound;
    if (finding->op) {
      diagnosis.op = finding->op;
    } else if (facts.candidate >= 0 && !rule->otherwise_healthy && !rule->moves_between_operators) {
      diagnosis.op = facts.op().name;
    }
    diagnosis.summary = finding->headline;
    diagnosis.evidence.push_back(finding->evidence);
    diagnosis.advice = finding->advice;
    drop_what_does_not_gain(diagnosis.advice, facts.gate.step_s);
    if (!rule->moves_between_operators) add_plan(facts, diagnosis);
    add_fewer_workers(facts, diagnosis);
    add_memory(facts, diagnosis);
    add_where_to_set(facts, diagnosis);
    add_how_to_measure(facts, diagnosis);
    add_undivided(facts, diagnosis);
    add_functions(facts.profile, diagnosis);
    if (is_bound(diagnosis.kind)) add_code_changes(facts, diagnosis);
    if (waited_at_first(facts)) {
      diagnosis.summary += ", but only in the first " + duration(facts.intermittent->calm_from_s);
      diagnosis.advice.clear();
      diagnosis.reason =
          "since then its items cost little: workers would not share what this process keeps in memory";
    }
  }
  if (rule != nullptr && diagnosis.advice.empty() && diagnosis.reason.empty())
    diagnosis.reason = why_no_advice(facts);
  diagnosis.share_of_step =
      diagnosis.kind == VerdictKind::not_input_bound ? 0 : share_of_step(facts, diagnosis.op);
  diagnosis.confidence = confidence_when_bound(facts, diagnosis, finding ? finding->certainty : kEstimated);
  if (diagnosis.kind != VerdictKind::not_input_bound)
    diagnosis.next_bottleneck = next_limit(facts, diagnosis);
}

/// next(iter(loader)) in the loop: what starting costs is all that the steps wait for.
void conclude_one_batch_epochs(const profile::Profile& profile, Diagnosis& diagnosis) {
  const auto epochs = static_cast<double>(profile.epochs);
  const double started_s = profile.startup.first_batch_s + profile.startup.later_epochs_s;
  diagnosis.summary = "the loop starts its loader anew for each of " + as_written(epochs) + " batches";
  diagnosis.reason = "an epoch of one batch has no steady step; waiting for these batches took " +
                     duration(started_s) + ", " + duration(started_s / epochs) + " each";
  diagnosis.advice.push_back({});
  diagnosis.advice.back().text =
      "make one iterator before the loop and take the next batch from it in each step; next(iter(loader)) "
      "draws a new "
      "order and starts the workers for every batch";
  diagnosis.advice.back().code =
      "batches = iter(loader)\nfor step in range(steps):\n    batch = next(batches)";
}

/// The loop does not starve, and would be faster with fewer workers or none: then handing over finished
/// batches is what holds it up.
void look_for_too_many_workers(Case& facts) {
  if (!facts.loader || facts.loader->handoff < 0 ||
      facts.gate.wait_share < facts.thresholds.gate.starved_share)
    return;
  if (find_cause(facts, false).first != nullptr) return;
  const std::optional<Advice> fewer = advise_fewer_workers(*facts.loader, facts.predictor);
  if (!fewer || !fewer->speedup) return;
  facts.gate.state = Gate::State::kBound;
  facts.gate.handoff_only = true;
  facts.gate.times_limit = (*fewer->speedup - 1) / (kWorthIt - 1);
  facts.candidate = facts.loader->handoff;
}

/// A healthy run that lives on what a queue held at its start: judged as it will be.
std::optional<Diagnosis> foresee(const profile::Profile& profile, const Thresholds& thresholds) {
  const std::optional<Drain> drain = draining_queue(profile);
  if (!drain) return std::nullopt;
  const InterpreterLock lock = read_interpreter_lock(profile, thresholds.lock);
  const Gate now = judge_gate(profile, lock, thresholds.gate);
  if (now.state != Gate::State::kHealthy || lock.contended) return std::nullopt;
  const std::optional<profile::Profile> foreseen = once_drained(profile, *drain);
  if (!foreseen) return std::nullopt;
  const std::unique_ptr<Predictor> predictor = predictor_for(*foreseen);
  Case facts = examine(*foreseen, *predictor, thresholds);
  if (facts.gate.state != Gate::State::kBound) return std::nullopt;
  facts.drain = drain;
  facts.gate.evidence = now.evidence;
  Diagnosis diagnosis;
  add_evidence(facts, diagnosis);
  conclude_bound(facts, diagnosis);
  compare_with_queues(facts, diagnosis);
  add_machine(facts, diagnosis);
  return diagnosis;
}

}  // namespace

Diagnosis diagnose(const profile::Profile& recorded, const Thresholds& thresholds) {
  const profile::Profile profile = plausible(recorded);
  return diagnose(CachedPredictor(predictor_for(profile)), thresholds);
}

namespace {

/// The thread that hands on what workers made never waits until there is room: the training loop takes batches as fast as
/// they come.
bool hands_on_at_once(const Case& facts, const std::string& by) {
  return by == "thread" && facts.loader && facts.loader->workers > 0 &&
         1 - facts.gate.wait_share <= facts.thresholds.gate.estimated_share();
}

Diagnosis verdict_on(const Predictor& predictor, const Thresholds& thresholds) {
  const std::optional<profile::Profile> seen = seen_by_device(predictor.profile());
  const profile::Profile& profile = seen ? *seen : predictor.profile();
  Diagnosis diagnosis;
  Case facts = examine(profile, predictor, thresholds);
  if (facts.gate.state == Gate::State::kUnmeasurable) {
    diagnosis.kind = VerdictKind::undetermined;
    diagnosis.reason = facts.gate.missing;
    if (starts_for_every_batch(profile, thresholds.gate)) {
      conclude_one_batch_epochs(profile, diagnosis);
      return diagnosis;
    }
    const bool timed = profile.sink.steps > 0 || (profile.queues.empty() && !profile.device);
    diagnosis.summary = not_begun(profile) ? "the loop over this loader has not begun"
                        : timed            ? "too short to judge"
                                           : "the steps of the training loop were not recorded";
    if (!timed) {
      // The queues' verdict holds only if the loop waits at all.
      QueueOpinion queues = judge_queues(profile, thresholds.candidate);
      if (queues.op >= 0) {
        queues.evidence.says += "; should the training loop wait, it is for " +
                                profile.operators[static_cast<std::size_t>(queues.op)].name;
      }
      diagnosis.queue_rule = rule_of_queues(profile, queues);
      if (!queues.evidence.says.empty()) diagnosis.evidence.push_back(std::move(queues.evidence));
    }
    return diagnosis;
  }
  diagnosis.reason = contradiction(profile);
  if (!diagnosis.reason.empty()) {
    diagnosis.kind = VerdictKind::undetermined;
    diagnosis.summary = "the recording is damaged: its figures contradict each other";
    return diagnosis;
  }
  const std::string by = setting(profile, kHandsOver);
  if (by == "thread" && facts.gate.wait_share < kMostOf) {
    facts.gate.state = Gate::State::kHealthy;  // it mostly waits until there is room for its batch
  } else if (!by.empty() && !hands_on_at_once(facts, by)) {
    diagnosis.kind = VerdictKind::undetermined;
    diagnosis.summary = by == "loop" ? "the loop hands its batches on to another thread, and waits for it"
                                     : "a thread iterates this loader and hands its batches on";
    diagnosis.reason =
        by == "loop" ? "a batch takes what that thread needs for it, which was not recorded: wrap what the "
                       "thread takes its batches from"
                     : "what the training loop itself waits for was not recorded: wrap what it takes its "
                       "batches from (for batch in hr.wrap(...), hr.wrap(queue)), or mark its wait with "
                       "hr.get_next";
    return diagnosis;
  }
  if (std::optional<Diagnosis> foreseen = foresee(profile, thresholds)) return *foreseen;
  if (facts.gate.state == Gate::State::kHealthy) look_for_too_many_workers(facts);
  add_evidence(facts, diagnosis);
  if (facts.gate.state == Gate::State::kHealthy) {
    conclude_healthy(facts, diagnosis);
  } else {
    conclude_bound(facts, diagnosis);
  }
  if (!by.empty()) add_handing_thread(facts, diagnosis);
  add_undivided_stream(facts, diagnosis);
  add_long_steps(facts, diagnosis);
  add_batch_windows(facts, diagnosis);
  compare_with_queues(facts, diagnosis);
  add_machine(facts, diagnosis);
  diagnosis.windows = verdict_windows(facts, diagnosis);
  return diagnosis;
}

}  // namespace

Diagnosis diagnose(const Predictor& predictor, const Thresholds& thresholds) {
  if (const auto behind = with_device_behind(predictor.profile(), thresholds.pauses))
    return diagnose(CachedPredictor(predictor_for(*behind)), thresholds);
  Diagnosis diagnosis = verdict_on(predictor, thresholds);
  diagnosis.risks = risks_of(predictor.profile(), thresholds.risk);
  return diagnosis;
}

}  // namespace headrace::analysis
