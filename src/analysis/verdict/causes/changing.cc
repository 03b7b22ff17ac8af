// The run changes: it starts, stops now and then, or another operator limits. docs/verdicts/changing.md
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "../diagnosis_steps.h"
#include "../long_steps.h"
#include "headrace/analysis/verdict/plan.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

// --- startup ---

/// The parameter that would keep the workers between epochs, where they could be kept and are not; else "".
std::string keeps_workers(const Case& facts) {
  constexpr auto kKeeps = profile::Quantity::keeps_workers;
  if (facts.loader) {
    const profile::LoaderParameter* parameter = facts.loader->parameter(kKeeps);
    const bool could = parameter != nullptr && facts.loader->workers > 0 && !facts.loader->keeps_workers;
    return could ? parameter->name : "";
  }
  for (const profile::OperatorProfile& op : facts.profile.operators) {
    const profile::Parameter* parameter = parameter_that_sets(op.parameters, kKeeps);
    if (parameter != nullptr) return parameter->value == 0 ? parameter->parameter : "";
  }
  return "";
}

/// Share of an epoch that waits for its first batch, from the second epoch on; 0 where there is one.
double share_of_epochs(const profile::Profile& profile) {
  if (profile.epochs < 2) return 0;
  const auto epochs = static_cast<double>(profile.epochs);
  const double start_s = profile.startup.later_epochs_s / (epochs - 1);
  return ratio(start_s, start_s + profile.elapsed_s / epochs);
}

/// The operator that gathers items before it gives the first one, largest first; "": there is none.
std::string shuffles(const profile::Profile& profile) {
  const profile::OperatorProfile* found = nullptr;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.kind == profile::OperatorKind::shuffle && (found == nullptr || op.demand_s > found->demand_s))
      found = &op;
  }
  return found == nullptr ? "" : found->name;
}

// --- transient_stall ---

constexpr std::size_t kMaxStalls = 3;
/// For one stall; n of them need n times n as many. In fewer steps, what stalls now and then does so often.
constexpr std::size_t kStepsOfStall = 15;

/// Items of one operator that took about as long as the stall: many of them are slow samples, not one stall.
std::size_t slow_items(const Case& facts, double stall_s) {
  std::size_t most = 0;
  for (const profile::OperatorProfile& op : facts.profile.operators) {
    std::size_t here = 0;
    for (const profile::WorkerProfile& worker : op.per_worker) {
      for (const profile::ServiceSample& sample : worker.slowest)
        here += sample.wall_s >= kMostOf * stall_s ? 1 : 0;
    }
    most = std::max(most, here);
  }
  return most;
}

/// Number of waits to leave out for the rest to be healthy; 0 if no small number does that.
std::size_t stalls_that_explain(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const StallThresholds& thresholds = facts.thresholds.stall;
  const auto& waits = profile.sink.longest_waits;
  double left_s = profile.sink.starved_share * profile.elapsed_s;
  double elapsed_s = profile.elapsed_s;
  for (std::size_t n = 1; n <= std::min(kMaxStalls, waits.size()); ++n) {
    const double wait_s = waits[n - 1].wait_s;
    left_s = std::max(0.0, left_s - wait_s);
    elapsed_s = std::max(0.0, elapsed_s - wait_s);
    if (wait_s < thresholds.least_s || facts.gate.steps < n * n * kStepsOfStall) return 0;
    const double next_s = n < waits.size() ? waits[n].wait_s : 0;
    if (ratio(left_s, elapsed_s) < facts.thresholds.gate.starved_share && next_s < thresholds.next * wait_s)
      return n;
  }
  return 0;
}

}  // namespace

FirstDraw first_draw_of(const profile::Profile& profile, double startup_s) {
  const std::string text = setting(profile, kFirstDraw);
  const std::size_t space = text.rfind(' ');
  FirstDraw draw;
  if (space == std::string::npos) return draw;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), draw.seconds);
  const auto epochs = static_cast<double>(std::max<std::uint64_t>(1, profile.epochs));
  if (draw.seconds * epochs >= kMostOf * startup_s) draw.sampler = text.substr(0, space);
  return draw;
}

std::string cure_of(const FirstDraw& draw) {
  return "draw the order in chunks, or the next epoch's in the background; " + draw.sampler +
         " makes all of it before the first batch, so workers that stay gain nothing";
}

/// Worker start or first batches dominate a short run whose steady loop is healthy.
std::optional<Finding> judge_startup(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const double startup_s =
      profile.startup.first_batch_s + profile.startup.later_epochs_s + profile.sink.worker_start_wait_s;
  const double of_epochs = share_of_epochs(profile);
  // If the steps wait, too, the starts of epochs must take more than all of them.
  const bool healthy = facts.gate.state == Gate::State::kHealthy;
  const bool dominates =
      healthy ? startup_s >= profile.elapsed_s || of_epochs >= facts.thresholds.risk.startup_share
              : of_epochs >= kMostOf;
  if (!dominates) return std::nullopt;
  Finding finding;
  finding.headline = startup_s >= profile.elapsed_s
                         ? "start-up took longer than the training loop itself"
                         : "every epoch waits for its first batch for " + percent(of_epochs) + " of its time";
  finding.evidence = cause_evidence(
      "starting took " + duration(startup_s) + ", all steps together " + duration(profile.elapsed_s),
      {{"startup_s", startup_s},
       {"worker_start_s", profile.startup.worker_start_s},
       {"elapsed_s", profile.elapsed_s}});
  if (const FirstDraw draw = first_draw_of(profile, startup_s); !draw.sampler.empty()) {
    finding.op = draw.sampler;
    finding.headline =
        "drawing the order of an epoch takes " + duration(draw.seconds) + " in " + draw.sampler;
    finding.evidence.says +=
        "; " + draw.sampler + " took " + duration(draw.seconds) + " for the first draw of an epoch";
    finding.evidence.figures["first_draw_s"] = draw.seconds;
    finding.advice.push_back(in_words(cure_of(draw)));
    return finding;
  }
  const double restarts_s = profile.startup.worker_start_s * (static_cast<double>(profile.epochs) - 1);
  const std::string parameter = keeps_workers(facts);
  if (restarts_s > 0 && restarts_s >= facts.thresholds.risk.startup_share * startup_s && !parameter.empty()) {
    Advice advice = in_words("keep the workers between epochs: from start to first request they took " +
                             duration(profile.startup.worker_start_s));
    advice.parameter = parameter;
    advice.from = false;
    advice.to = true;
    finding.advice.push_back(std::move(advice));
  } else if (const std::string buffer = shuffles(profile); !buffer.empty() && of_epochs > 0) {
    finding.op = buffer;
    finding.headline += ", while " + buffer + " fills";
    finding.advice.push_back(
        in_words("let " + buffer +
                 " give its first item before it is full (a small initial), or make its "
                 "buffer shorter; workers that stay between epochs fill it anew all the same"));
  }
  return finding;
}

/// One to three long waits in a run that is healthy without them.
std::optional<Finding> judge_transient_stall(const Case& facts) {
  const profile::Profile& profile = facts.profile;
  const std::size_t stalls = stalls_that_explain(facts);
  if (stalls == 0 || facts.lock.contended) return std::nullopt;
  // Slow to fetch or to copy all the time: without the stall it would not be healthy.
  if (facts.gate.served_share >= facts.thresholds.gate.served_share) return std::nullopt;
  double lost_s = 0;
  for (std::size_t i = 0; i < stalls; ++i) lost_s += profile.sink.longest_waits[i].wait_s;
  // In a run that is healthy anyway, a hiccup is worth a word only where it costs something.
  if (facts.gate.state == Gate::State::kHealthy && lost_s < facts.thresholds.stall.worth_s)
    return std::nullopt;
  const double shortest_s = profile.sink.longest_waits[stalls - 1].wait_s;
  if (slow_items(facts, shortest_s) > kMaxStalls) return std::nullopt;
  const profile::Stall& first = profile.sink.longest_waits.front();
  Finding finding;
  finding.headline =
      (stalls == 1 ? "one stall of " : counted(static_cast<double>(stalls), "stall") + ", together ") +
      duration(lost_s) + "; otherwise healthy";
  finding.evidence = cause_evidence("the longest wait was " + duration(first.wait_s) + " at step " +
                                        std::to_string(first.step) + ", " + duration(first.at_s) +
                                        " into the loop; without it the training loop does not starve",
                                    {{"stalls", static_cast<double>(stalls)},
                                     {"lost_s", lost_s},
                                     {"at_s", first.at_s},
                                     {"step", static_cast<double>(first.step)}});
  return finding;
}

/// The loop stops every so many steps for work of its own: an evaluation, a checkpoint, logging.
std::optional<Finding> judge_pauses(const Case& facts) {
  if (facts.gate.state != Gate::State::kHealthy) return std::nullopt;
  const std::optional<LongSteps> found = long_steps(facts.profile, facts.thresholds.pauses);
  if (!found || found->reads_device || !(found->periodic || found->in_collector || found->share >= kMostOf))
    return std::nullopt;
  const std::string period = as_written(std::round(found->steps_apart));
  Finding finding;
  const std::string often =
      found->periodic ? "every " + period + " steps the loop stops for "
                      : "in " + counted(static_cast<double>(found->count), "step") + " the loop stops for ";
  finding.headline = often + duration(found->each_s) +
                     (found->where.empty() ? " of its own work" : " in " + found->where) + ": " +
                     percent(found->share) + " of the time";
  finding.evidence = cause_evidence(in_words(*found), figures_of(*found));
  finding.advice.push_back(
      in_words(std::string(found->in_collector ? kCollectLess
                                               : "do it less often, on fewer batches, or beside the training "
                                                 "(another process; an asynchronous checkpoint)") +
               ": without these pauses a step takes " + duration(found->without_s) +
               " on average instead of " + duration(facts.gate.step_s)));
  return finding;
}

/// Two operators limit in turn: the average of the run names one of them, or neither.
std::optional<Finding> judge_alternating(const Case& facts) {
  const auto pair = alternating_pair(facts.phases, facts.shapes, facts.thresholds.phases);
  if (!pair || facts.lock.contended) return std::nullopt;
  const std::string& a = facts.profile.operators[static_cast<std::size_t>(pair->first)].name;
  const std::string& b = facts.profile.operators[static_cast<std::size_t>(pair->second)].name;
  double a_s = 0;
  double b_s = 0;
  for (const Phase& phase : facts.phases) {
    if (phase.bound && phase.leader() == pair->first) a_s += phase.duration_s();
    if (phase.bound && phase.leader() == pair->second) b_s += phase.duration_s();
  }
  Finding finding;
  finding.headline = a + " and " + b + " limit in turn";
  finding.evidence = cause_evidence(a + " limits for " + duration(a_s) + " of the run, " + b + " for " +
                                        duration(b_s) + "; see the windows",
                                    {{"first_s", a_s}, {"second_s", b_s}});
  finding.advice = plan_after(facts.predictor, {});
  finding.advice.push_back(in_words("act on both: relieving only one of " + a + " and " + b +
                                    " gains in its own part of the run"));
  return finding;
}

}  // namespace headrace::analysis
