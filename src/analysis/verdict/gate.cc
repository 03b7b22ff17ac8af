#include "headrace/analysis/verdict/gate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "../read/device_lag.h"
#include "../read/numbers.h"
#include "../read/own_compute.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

/// Seconds of wait in the first steps, where the loop hardly waits afterwards, for at least as long: buffers were empty,
/// and workers, or what they import, still started. Only in a run whose steps are all there.
double settling_s(const profile::SinkProfile& sink, const GateThresholds& thresholds) {
  const std::vector<profile::StepSample>& steps = sink.sequence;
  if (static_cast<double>(steps.size()) < thresholds.fewest_steps ||
      steps.size() + 1 < sink.getnext_wait.count)
    return 0;
  double wait_s = 0;
  double time_s = 0;
  for (const profile::StepSample& step : steps) {
    wait_s += step.wait_s;
    time_s += step.wait_s + step.compute_s;
  }
  const double handed_s = sink.handoff_floor_s;
  double settling_s = 0;
  for (std::size_t first = 0; first < steps.size(); ++first) {
    const auto left = static_cast<double>(steps.size() - first);
    if (static_cast<double>(first) > 2 * thresholds.fewest_steps ||
        left < std::max(thresholds.fewest_steps, static_cast<double>(first)))
      return 0;
    if (wait_s - left * handed_s < kMostOf * thresholds.starved_share * time_s) return settling_s;
    settling_s += std::max(0.0, steps[first].wait_s - handed_s);
    wait_s -= steps[first].wait_s;
    time_s -= steps[first].wait_s + steps[first].compute_s;
  }
  return 0;
}

bool is_opaque(const profile::Profile& profile) {
  if (!profile.queues.empty()) return false;
  return std::all_of(profile.operators.begin(), profile.operators.end(),
                     [](const profile::OperatorProfile& op) {
                       return op.fidelity == profile::Fidelity::inclusive && !op.in_sink;
                     });
}

/// Levels of queues or the device's steps were recorded, and the loop's own times were not.
bool recorded_without_steps(const profile::Profile& profile) {
  if (profile.sink.steps > 0) return false;
  return profile.device.has_value() ||
         std::any_of(profile.queues.begin(), profile.queues.end(),
                     [](const profile::QueueProfile& queue) { return queue.samples.value_or(0) > 0; });
}

double copied_in_step_s(const profile::Profile& profile) {
  double sum = 0;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (runs_in_step(profile, static_cast<int>(i))) sum += profile.operators[i].demand_s;
  }
  return std::min(sum, profile.sink.compute_s);
}

/// Share of the hand-off spent waiting for a core, which is not the price of handing over.
double core_wait_of_handoff(const profile::Profile& profile) {
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.kind != profile::OperatorKind::handoff) continue;
    return core_wait_share(op);
  }
  return 0;
}

/// Share of the input's operators in the CPU time that competes with the loop's thread.
double input_share_of_cpu(const profile::Profile& profile) {
  const profile::Host& host = profile.host;
  if (host.cores <= 0 || host.cpu_share.value_or(0) < kMostOf) return 0;
  const double pool_s = pool_cpu_s(profile);
  const double operators_s = input_cpu_s(profile);
  // A step that sleeps, or that a device computes, has no thread pools at work.
  const bool no_pools = sleeps(profile.sink) || works_on_device(profile.sink);
  const double input_s = operators_s + (no_pools ? pool_s : 0);
  const double foreign_s = host.foreign_cpu_share.value_or(0) * host.cores * profile.sink.step_s;
  return ratio(input_s, operators_s + pool_s + foreign_s);
}

/// Standard error of the share of waits, from how much they differ between the last steps. Few long waits in a
/// short run make it large; waits in many steps make it small.
double error_of_waits(const profile::SinkProfile& sink) {
  const auto count = static_cast<double>(sink.sequence.size());
  if (count < 2 || sink.getnext_wait.count == 0) return 0;
  double sum = 0;
  double squares = 0;
  for (const profile::StepSample& step : sink.sequence) {
    sum += step.wait_s;
    squares += step.wait_s * step.wait_s;
  }
  const double variance = std::max(0.0, squares - sum * sum / count) / (count - 1);
  return ratio(std::sqrt(variance / static_cast<double>(sink.getnext_wait.count)), sink.step_s);
}

Evidence gate_evidence(const Gate& gate, const profile::Host& host) {
  Evidence evidence;
  evidence.rule = Rule::gate;
  evidence.figures = {{"steps", static_cast<double>(gate.steps)},
                      {"step_s", gate.step_s},
                      {"compute_s", gate.compute_s},
                      {"wait_share", gate.wait_share},
                      {"starved_share", gate.starved_share},
                      {"handoff_floor_share", gate.handoff_share}};
  // Beside other processes, part of the waits and of the compute is theirs, and stays.
  if (!has_neighbours(host)) evidence.figures["most_speedup"] = gate.most_speedup();
  evidence.says = "the training loop waited " + duration(gate.wait_share * gate.step_s) + " of " +
                  duration(gate.step_s) + " in every step (" + percent(gate.wait_share) + "); starved " +
                  percent(gate.starved_share) + " of the time (healthy: under 5 %)";
  if (gate.starting_share > 0.001) {
    evidence.says += "; " + percent(gate.starting_share) + " more while the input started";
    evidence.figures["starting_share"] = gate.starting_share;
  }
  if (gate.waits_are_noise) evidence.says += "; in few of the steps, while other programs had the cores";
  if (gate.handoff_share > 0.001) {
    evidence.says += "; hand-off of finished batches " + duration(gate.handoff_share * gate.step_s);
    if (gate.core_wait_share > 0.005) {
      evidence.says += ", " + duration(gate.core_wait_share * gate.step_s) + " of it waiting for a core";
      evidence.figures["core_wait_share"] = gate.core_wait_share;
    }
  }
  if (gate.transfer_share > 0.001) {
    evidence.says += "; copies to the device inside the step " + duration(gate.transfer_share * gate.step_s);
  }
  if (gate.stretch_share > 0) {
    evidence.says += "; its own compute took " + duration(gate.compute_s) + ", alone it takes " +
                     duration(gate.own_compute_s);
  }
  if (gate.ceiling_s > 0) {
    evidence.says += "; measured over batches in memory, a step takes " + duration(gate.ceiling_s);
    evidence.figures["ceiling_s"] = gate.ceiling_s;
  }
  if (gate.loop_core_wait_share > 0) evidence.figures["loop_core_wait_share"] = gate.loop_core_wait_share;
  if (gate.stretch_share > 0) evidence.figures["stretch_share"] = gate.stretch_share;
  if (gate.transfer_share > 0) evidence.figures["transfer_share"] = gate.transfer_share;
  return evidence;
}

}  // namespace

bool others_have_the_cores(const profile::Host& host) {
  const double own = host.cpu_share.value_or(1);
  const double foreign = host.foreign_cpu_share.value_or(0);
  return foreign > own && foreign + own >= kMostOf;
}

double Gate::most_speedup() const noexcept {
  constexpr double kMax = 1e6;
  return std::min(kMax, 1 / std::max(1 / kMax, 1 - input_share));
}

bool not_begun(const profile::Profile& profile) {
  return profile.sink.steps == 0 && profile.epochs == 0 && !recorded_without_steps(profile);
}

bool starts_for_every_batch(const profile::Profile& profile, const GateThresholds& thresholds) {
  return static_cast<double>(profile.epochs) >= thresholds.fewest_steps &&
         profile.sink.getnext_wait.count == 0 && profile.sink.steps <= profile.epochs;
}

Gate judge_gate(const profile::Profile& profile, const InterpreterLock& lock,
                const GateThresholds& thresholds) {
  const profile::SinkProfile& sink = profile.sink;
  Gate gate;
  gate.steps = sink.getnext_wait.count;
  gate.step_s = sink.step_s;
  gate.compute_s = sink.compute_s;
  if (gate.steps == 0 && gate.step_s <= 0 && recorded_without_steps(profile)) {
    gate.missing =
        "nothing tells how long the steps of the training loop took, so nothing tells whether it waits";
    return gate;
  }
  if (not_begun(profile)) {
    gate.missing =
        "no batch was taken from it; if the program iterates, let it iterate over what hr.wrap returned";
    return gate;
  }
  if (static_cast<double>(gate.steps) < thresholds.fewest_steps ||
      profile.elapsed_s < thresholds.shortest_s || gate.step_s <= 0) {
    gate.missing = counted(static_cast<double>(gate.steps), "steady step") + " in " +
                   duration(profile.elapsed_s) +
                   "; at least 8 steps and 50 ms after the first batch are needed";
    return gate;
  }
  gate.opaque = is_opaque(profile);
  gate.own_compute_s = own_compute_s(profile, lock);
  const double stretch_s = gate.compute_s - gate.own_compute_s;
  gate.wait_share = sink.wait_share;
  // Waiting for workers to start belongs to the start-up, also where they start one after the other.
  const double starting_s = std::max(sink.worker_start_wait_s, settling_s(sink, thresholds));
  gate.starting_share = std::min(ratio(starting_s, profile.elapsed_s), sink.starved_share);
  gate.starved_share = ratio(sink.starved_share - gate.starting_share, 1 - gate.starting_share);
  gate.handoff_share = sink.wait_share - sink.starved_share;
  gate.stretch_share = std::min(1 - gate.wait_share, ratio(stretch_s, gate.step_s));
  gate.transfer_share = ratio(copied_in_step_s(profile), gate.step_s);
  gate.input_share = std::min(1.0, gate.wait_share + gate.stretch_share + gate.transfer_share);

  // Under the lock the sink waits beside ready batches, so all of its wait counts, not the starved part
  // alone.
  const double counted_share =
      lock.contended ? gate.wait_share + ratio(lock.stretch_s, gate.step_s) : gate.starved_share;
  double threshold = lock.contended ? thresholds.estimated_share() : thresholds.starved_share;
  if (gate.opaque && sink.getnext_wait.p50_s < thresholds.opaque_handoff_s)
    threshold = thresholds.served_share;
  // A few waits may be other programs' if those have the cores: two standard errors less must still be near the
  // threshold. (Measured: two or three waits of 30 to 200 ms in 60 steps, 12 and 13 % of the time. The corpus has bound
  // runs beside others at 0.060 with an error of 0.012.)
  const double error = error_of_waits(sink);
  const bool by_chance = !lock.contended && others_have_the_cores(profile.host) && counted_share < kMostOf &&
                         counted_share - 2 * error < kMostOf * threshold;
  const bool starves = counted_share >= threshold && !by_chance;
  gate.waits_are_noise = !starves && counted_share >= threshold;
  gate.core_wait_share = gate.handoff_share * core_wait_of_handoff(profile);
  const double own_handoff_share = gate.handoff_share - gate.core_wait_share;
  gate.served_share = std::max(own_handoff_share, gate.transfer_share);
  gate.loop_core_wait_share =
      (gate.core_wait_share + ratio(core_wait_s(profile), gate.step_s)) * input_share_of_cpu(profile);
  if (const auto measured_s = sink.ceiling_step_s; measured_s && *measured_s > 0) {
    gate.ceiling_s = *measured_s;
    gate.input_share = std::clamp(1 - *measured_s / gate.step_s, 0.0, 1.0);
    if (gate.loop_core_wait_share > 0)
      gate.loop_core_wait_share = std::max(gate.loop_core_wait_share, gate.input_share - gate.wait_share);
  }
  const bool throttled = is_throttled(profile.host) && gate.wait_share >= thresholds.starved_share;
  if (throttled) gate.loop_core_wait_share = std::max(gate.loop_core_wait_share, gate.wait_share);
  gate.loop_waits_for_core =
      !starves && gate.loop_core_wait_share >= std::max(thresholds.estimated_share(), gate.served_share);
  const bool served_slowly =
      !starves && !gate.loop_waits_for_core && gate.served_share >= thresholds.served_share;
  gate.transfer_only = served_slowly && gate.transfer_share > own_handoff_share;
  gate.handoff_only = served_slowly && !gate.transfer_only;
  gate.state =
      starves || gate.loop_waits_for_core || served_slowly ? Gate::State::kBound : Gate::State::kHealthy;
  const double share = gate.loop_waits_for_core ? gate.loop_core_wait_share
                       : served_slowly          ? gate.served_share
                                                : counted_share;
  const double limit = gate.loop_waits_for_core ? thresholds.estimated_share()
                       : served_slowly          ? thresholds.served_share
                                                : threshold;
  gate.times_limit = gate.state == Gate::State::kBound
                         ? ratio(share, limit)
                         : std::max({ratio(share, limit), ratio(gate.served_share, thresholds.served_share),
                                     ratio(gate.loop_core_wait_share, thresholds.estimated_share())});
  gate.error_of_limit = ratio(error, std::max(share, limit));
  gate.evidence = gate_evidence(gate, profile.host);
  return gate;
}

void note_device_lag(const profile::SinkProfile& recorded, Gate& gate) {
  gate.device_lag_s = device_lag_s(recorded);
  if (gate.device_lag_s <= 0) return;
  gate.evidence.says += "; it waited " + duration(gate.device_lag_s) +
                        " longer, which cost nothing: the device, which works " +
                        duration(*recorded.device_span_s) + " on a step, was not done yet";
  gate.evidence.figures["device_span_s"] = *recorded.device_span_s;
  gate.evidence.figures["device_lag_s"] = gate.device_lag_s;
}

}  // namespace headrace::analysis
