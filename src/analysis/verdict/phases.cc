#include "headrace/analysis/verdict/phases.h"

#include <algorithm>
#include <cmath>

#include "../read/numbers.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/verdict/advice.h"
#include "headrace/analysis/verdict/gate.h"

namespace headrace::analysis {
namespace {

/// A tenth of a run's steps at most: long windows of a long run are phases as they are.
constexpr std::size_t kMaxPhases = 64;

struct Mean {
  double sum = 0;
  double weight = 0;
  void add(double value, double by) {
    sum += value * by;
    weight += by;
  }
  double value() const { return ratio(sum, weight); }
};

double steady_demand(const Phase& phase, int op) { return phase.demand_s[static_cast<std::size_t>(op)]; }

/// Pearson's correlation of two operators' demands over the phases.
double correlation(const std::vector<Phase>& phases, int a, int b) {
  Mean mean_a;
  Mean mean_b;
  for (const Phase& phase : phases) {
    mean_a.add(steady_demand(phase, a), 1);
    mean_b.add(steady_demand(phase, b), 1);
  }
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (const Phase& phase : phases) {
    const double da = steady_demand(phase, a) - mean_a.value();
    const double db = steady_demand(phase, b) - mean_b.value();
    ab += da * db;
    aa += da * da;
    bb += db * db;
  }
  return ratio(ab, std::sqrt(aa * bb));
}

/// Readings per second of the queue that the operator fills, where its busy time is from such readings.
double samples_per_s(const profile::Profile& profile, std::size_t op) {
  const profile::OperatorProfile& of = profile.operators[op];
  if (of.fidelity != profile::Fidelity::sampled || of.items || profile.windows.empty()) return 0;
  const double span_s = profile.windows.back().end_s - profile.windows.front().start_s;
  for (const profile::QueueProfile& queue : profile.queues) {
    if (contains(queue.from_operators, static_cast<int>(op)) && queue.samples)
      return ratio(static_cast<double>(*queue.samples), span_s);
  }
  return 0;
}

}  // namespace

int Phase::leader() const noexcept {
  const auto most = std::max_element(demand_s.begin(), demand_s.end());
  return most == demand_s.end() || *most <= 0 ? -1 : static_cast<int>(most - demand_s.begin());
}

std::vector<Phase> phases_of(const profile::Profile& profile, const Thresholds& thresholds) {
  const std::size_t count = profile.operators.size();
  double total_steps = 0;
  for (const profile::Window& window : profile.windows) total_steps += static_cast<double>(window.steps);
  const double enough = std::max(thresholds.gate.fewest_steps, total_steps / kMaxPhases);
  std::vector<double> sampled(count, 0);
  for (std::size_t i = 0; i < count; ++i) sampled[i] = samples_per_s(profile, i);
  std::vector<Phase> phases;
  Phase open;
  std::vector<double> busy(count, 0);
  const auto begin = [&](double start_s) {
    open = Phase{};
    open.start_s = start_s;
    open.demand_s.assign(count, 0);
    open.items.assign(count, 0);
    busy.assign(count, 0);
  };
  begin(profile.windows.empty() ? 0 : profile.windows.front().start_s);
  for (const profile::Window& window : profile.windows) {
    open.end_s = window.end_s;
    open.steps += static_cast<double>(window.steps);
    open.wait_s += window.wait_s;
    open.starved_s += window.starved_s;
    open.compute_s += window.compute_s;
    for (std::size_t i = 0; i < count; ++i) {
      if (!runs_in_step(profile, static_cast<int>(i)))
        busy[i] += std::max(0.0, window.operators[i].busy_share) * (window.end_s - window.start_s);
      open.items[i] += static_cast<double>(window.operators[i].items.value_or(0));
    }
    if (open.steps < enough) continue;
    for (std::size_t i = 0; i < count; ++i) {
      open.demand_s[i] = busy[i] / open.steps;
      open.samples.push_back(sampled[i] * (open.end_s - open.start_s));
    }
    open.bound = open.starved_share() >= thresholds.gate.starved_share;
    phases.push_back(open);
    begin(window.end_s);
  }
  return phases;  // what is left at the end is too short to be judged
}

double drift_ratio(const std::vector<Phase>& phases, int op, const ServiceShape& shape,
                   const PhaseThresholds& thresholds) {
  if (static_cast<double>(phases.size()) < thresholds.fewest_phases) return 0;
  Mean mean;
  Mean items;
  Mean samples;
  Mean busy;
  for (const Phase& phase : phases) {
    mean.add(steady_demand(phase, op), phase.steps);
    items.add(phase.items[static_cast<std::size_t>(op)], 1);
    samples.add(phase.samples[static_cast<std::size_t>(op)], 1);
    busy.add(ratio(steady_demand(phase, op) * phase.steps, phase.end_s - phase.start_s), 1);
  }
  double variance = 0;
  for (const Phase& phase : phases) {
    const double apart = ratio(steady_demand(phase, op), mean.value()) - 1;
    variance += apart * apart / static_cast<double>(phases.size());
  }
  // A few percent of spread is there in every run; without the floor, constant items would seem to drift.
  double by_chance = shape.cv * shape.cv / std::max(1.0, items.value()) + thresholds.noise;
  // A share p of n readings finds it at work: n p of them, with a variance of n p (1 - p).
  if (samples.value() > 0 && busy.value() > 0)
    by_chance += std::max(0.0, 1 - busy.value()) / (busy.value() * samples.value());
  return variance / by_chance;
}

std::optional<std::pair<int, int>> alternating_pair(const std::vector<Phase>& phases,
                                                    const std::vector<ServiceShape>& shapes,
                                                    const PhaseThresholds& thresholds) {
  std::vector<double> led_s(shapes.size(), 0);
  for (const Phase& phase : phases) {
    if (!phase.bound || phase.leader() < 0) continue;
    led_s[static_cast<std::size_t>(phase.leader())] += phase.starved_s;
  }
  if (static_cast<double>(phases.size()) < thresholds.fewest_phases || led_s.size() < 2) return std::nullopt;
  std::vector<int> order(led_s.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::partial_sort(order.begin(), order.begin() + 2, order.end(), [&](int a, int b) {
    return led_s[static_cast<std::size_t>(a)] > led_s[static_cast<std::size_t>(b)];
  });
  const int a = order[0];
  const int b = order[1];
  if (led_s[static_cast<std::size_t>(b)] <= 0) return std::nullopt;
  // Each must lead for longer than items drawn at random would make it lead.
  const double drift_a = drift_ratio(phases, a, shapes[static_cast<std::size_t>(a)], thresholds);
  const double drift_b = drift_ratio(phases, b, shapes[static_cast<std::size_t>(b)], thresholds);
  if (std::min(drift_a, drift_b) < thresholds.drift || correlation(phases, a, b) > -thresholds.against)
    return std::nullopt;
  return std::pair{a, b};
}

std::optional<Intermittence> intermittence(const std::vector<Phase>& phases, int op,
                                           const ServiceShape& shape, const PhaseThresholds& thresholds) {
  if (op < 0) return std::nullopt;
  Phase bound;
  Phase calm;
  double bound_demand = 0;
  double calm_demand = 0;
  double calm_from_s = 0;
  bool returns = false;
  for (const Phase& phase : phases) {
    const bool starves = phase.starved_share() >= GateThresholds{}.estimated_share();
    Phase& into = starves ? bound : calm;
    if (starves) {
      returns = returns || calm.steps > 0;
      calm_from_s = phase.end_s;
    }
    into.steps += phase.steps;
    into.wait_s += phase.wait_s;
    into.compute_s += phase.compute_s;
    into.starved_s += phase.starved_s;
    (starves ? bound_demand : calm_demand) += steady_demand(phase, op) * phase.steps;
  }
  if (bound.steps <= 0 || calm.steps <= 0) return std::nullopt;
  Intermittence found;
  found.bound_time_share = ratio(bound.duration_s(), bound.duration_s() + calm.duration_s());
  found.bound_demand_s = bound_demand / bound.steps;
  found.bound_step_s = bound.duration_s() / bound.steps;
  found.bound_compute_s = bound.compute_s / bound.steps;
  found.bound_step_share = bound.steps / (bound.steps + calm.steps);
  found.calm_step_s = calm.duration_s() / calm.steps;
  if (!returns) found.calm_from_s = calm_from_s;
  const bool calm_is_calm =
      calm.starved_share() < GateThresholds{}.starved_share && 1 - found.bound_time_share >= kHardly;
  // In calm phases the operator is quicker, not merely behind a full buffer.
  const bool explained = found.bound_demand_s >= thresholds.slower * (calm_demand / calm.steps) &&
                         found.bound_demand_s > found.bound_compute_s &&
                         calm_demand < thresholds.calm_busy_share * calm.duration_s();
  if (!calm_is_calm || !explained || drift_ratio(phases, op, shape, thresholds) < thresholds.drift)
    return std::nullopt;
  return found;
}

namespace {

/// The training loop takes from it, itself or by what passes finished batches on.
bool feeds_sink(const profile::Profile& profile, const profile::QueueProfile& queue) {
  if (queue.to_sink) return true;
  return std::any_of(queue.to_operators.begin(), queue.to_operators.end(), [&](int op) {
    return profile.operators[static_cast<std::size_t>(op)].kind == profile::OperatorKind::handoff;
  });
}

}  // namespace

std::optional<Drain> draining_queue(const profile::Profile& profile) {
  const std::size_t third = profile.windows.size() / 3;
  if (third < 2) return std::nullopt;
  for (std::size_t q = 0; q < profile.queues.size(); ++q) {
    const profile::QueueProfile& queue = profile.queues[q];
    if (!feeds_sink(profile, queue)) continue;
    Mean thirds[3];
    for (std::size_t w = 0; w < profile.windows.size(); ++w) {
      const profile::Window& window = profile.windows[w];
      thirds[std::min<std::size_t>(2, w / third)].add(window.queues[q].mean, window.end_s - window.start_s);
    }
    const double first = thirds[0].value();
    const double middle = thirds[1].value();
    const double last = thirds[2].value();
    const double fall = first - last;
    if (!(first > middle && middle > last)) continue;
    const double start = profile.windows.front().queues[q].mean;
    const double end = profile.windows.back().queues[q].mean;
    return Drain{static_cast<int>(q), first, last, std::max(fall, start - end)};
  }
  return std::nullopt;
}

std::optional<profile::Profile> once_drained(const profile::Profile& profile, const Drain& drain) {
  const double delivered = static_cast<double>(profile.sink.getnext_wait.count);
  if (delivered <= 2 * drain.drained || profile.sink.step_s <= 0) return std::nullopt;
  const double factor = delivered / (delivered - drain.drained);
  profile::Profile foreseen = profile;
  for (profile::OperatorProfile& op : foreseen.operators) {
    op.demand_s *= factor;
    op.items_per_batch *= factor;
  }
  const DemandRanking ranking = rank_demand(foreseen, foreseen.sink.step_s);
  if (ranking.empty() || ranking.first().demand_s <= profile.sink.compute_s) return std::nullopt;
  profile::SinkProfile& sink = foreseen.sink;
  sink.step_s = ranking.first().demand_s;
  sink.wait_share = 1 - sink.compute_s / sink.step_s;
  sink.starved_share = sink.wait_share;
  foreseen.windows.clear();
  foreseen.stall_ledger.clear();
  for (profile::QueueProfile& queue : foreseen.queues) {
    if (queue.name != profile.queues[static_cast<std::size_t>(drain.queue)].name) continue;
    queue.mean = queue.full_share = 0;
    queue.empty_share = 1;
  }
  return foreseen;
}

}  // namespace headrace::analysis
