#include "headrace/analysis/diagnosis/predictor.h"

#include <algorithm>
#include <cmath>

#include "headrace/analysis/diagnosis/advice.h"
#include "headrace/analysis/diagnosis/demand.h"
#include "headrace/analysis/diagnosis/interpreter_lock.h"
#include "headrace/analysis/diagnosis/loader.h"
#include "headrace/analysis/diagnosis/service_shape.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

constexpr double kForeignTooHigh = 0.2;
/// What a queue between threads costs per batch where the loader had none.
constexpr double kThreadHandoff_s = 1e-4;

/// The recorded graph with the numbers that a change touches.
struct Model {
  std::vector<double> demand_s;  // per operator, of all its workers
  std::vector<double> cpu_s;     // per operator and batch
  std::vector<double> capacity;  // per queue
  std::vector<double> service;   // per operator, times what was recorded
  std::vector<int> workers;
  std::vector<bool> in_sink;
  std::vector<bool> in_process;
  double compute_s = 0;
  double floor_s = 0;
};

Model model_of(const profile::Profile& profile) {
  Model model;
  for (const profile::OperatorProfile& op : profile.operators) {
    model.demand_s.push_back(op.demand_s);
    model.cpu_s.push_back(cpu_per_batch_s(op));
    model.service.push_back(1);
    model.workers.push_back(op.workers);
    model.in_sink.push_back(op.in_sink);
    model.in_process.push_back(op.executor == "process");
  }
  for (const profile::QueueProfile& queue : profile.queues) {
    model.capacity.push_back(static_cast<double>(queue.capacity));
  }
  model.compute_s = profile.sink.compute_s;
  model.floor_s = profile.sink.handoff_floor_s * profile.sink.ready_share;
  return model;
}

/// The operators that change with `index`: those that share its threads.
std::vector<std::size_t> together_with(const profile::Profile& profile, int index) {
  std::vector<std::size_t> members{static_cast<std::size_t>(index)};
  const profile::OperatorProfile& op = profile.operators[members.front()];
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (i == members.front()) continue;
    const profile::OperatorProfile& other = profile.operators[i];
    if ((op.segment >= 0 && other.segment == op.segment) || (op.in_sink && other.in_sink))
      members.push_back(i);
  }
  return members;
}

/// Threads that stay behind no longer wait for the lock with those that left: they need their CPU time.
void free_from_lock(const profile::Profile& profile, Model& model) {
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (model.in_process[i] || cpu_bound_share(profile.operators[i]) < 0.3) continue;
    model.demand_s[i] = std::min(model.demand_s[i], model.cpu_s[i] / model.workers[i]);
  }
}

void apply(const profile::Profile& profile, const InterpreterLock& lock, const Change& change, Model& model) {
  const std::size_t at = static_cast<std::size_t>(std::max(0, change.index));
  if (change.kind == Change::Kind::kCapacity) {
    if (at < model.capacity.size()) model.capacity[at] = change.to;
    return;
  }
  if (at >= model.demand_s.size()) return;
  const int to = std::max(1, change.to);
  for (std::size_t i : together_with(profile, static_cast<int>(at))) {
    switch (change.kind) {
      case Change::Kind::kWorkers:
        model.demand_s[i] *= static_cast<double>(model.workers[i]) / to;
        model.workers[i] = to;
        model.in_sink[i] = false;
        break;
      case Change::Kind::kPrefetch:
        if (model.in_sink[i]) model.floor_s = std::max(model.floor_s, kThreadHandoff_s);
        model.in_sink[i] = false;
        break;
      case Change::Kind::kProcesses: {
        // Without the lock the body needs its CPU time; the rest of its wall time was mostly waiting for the
        // lock.
        const double needs = model.cpu_s[i] > 0 ? model.cpu_s[i] : model.demand_s[i] * model.workers[i];
        model.demand_s[i] = needs / to;
        model.workers[i] = to;
        model.in_process[i] = true;
        model.in_sink[i] = false;
        model.compute_s = profile.sink.compute_s - lock.stretch_s;
        free_from_lock(profile, model);
        break;
      }
      case Change::Kind::kService:
      case Change::Kind::kAlike:
        if (i != at) break;
        model.demand_s[i] *= change.factor;
        model.cpu_s[i] *= change.factor;
        model.service[i] *= change.factor;
        break;
      case Change::Kind::kCapacity:
      case Change::Kind::kPrefetchFactor:
      case Change::Kind::kInOrder:
        break;
    }
  }
}

struct Pace {
  double step_s = 0;
  double second_s = 0;  // of the next slowest part
  std::string limit;
  void offer(double candidate_s, const std::string& what) {
    if (candidate_s > step_s) {
      second_s = step_s;
      step_s = candidate_s;
      limit = what;
    } else {
      second_s = std::max(second_s, candidate_s);
    }
  }
};

Pace pace_of(const profile::Profile& profile, const InterpreterLock& lock, const Model& model) {
  profile::Profile changed;  // ranks by the same rule as the diagnosis
  changed.sink = profile.sink;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& recorded = profile.operators[i];
    profile::OperatorProfile op;
    op.name = recorded.name;
    op.fidelity = recorded.fidelity;
    op.segment = recorded.segment;
    op.demand_s = runs_in_step(profile, recorded) ? 0 : model.demand_s[i];
    op.in_sink = model.in_sink[i];
    changed.operators.push_back(std::move(op));
  }
  Pace pace;
  double sink_s = model.compute_s + model.floor_s;
  for (const SegmentDemand& segment : rank_demand(changed, profile.sink.step_s).segments) {
    if (segment.in_sink) {
      sink_s += segment.demand_s;
    } else {
      pace.offer(segment.demand_s, profile.operators[static_cast<std::size_t>(segment.largest)].name);
    }
  }
  pace.offer(sink_s, "sink");

  double cpu_s = profile.sink.compute_cpu_s.value_or(0);
  double cpu_in_threads = cpu_s;
  for (std::size_t i = 0; i < model.cpu_s.size(); ++i) {
    cpu_s += model.cpu_s[i];
    if (!model.in_process[i]) cpu_in_threads += model.cpu_s[i];
  }
  const double cores = profile.host.cores * (1 - profile.host.foreign_contention_share.value_or(0));
  if (cores > 0) pace.offer(cpu_s / cores, "cpu");
  // The lock is held for that share of the time at most; what moved to processes no longer wants it.
  if (lock.lock_share > 0.1) {
    const double held_s = std::min(lock.lock_share, std::max(lock.process_cores, 0.0)) * profile.sink.step_s;
    pace.offer(std::min(held_s, cpu_in_threads), "cpu");
  }
  return pace;
}

/// Probability that one side finds the buffer unfit (M/M/1/K, K scaled by the spread), summed over the
/// queues.
double blocking(const profile::Profile& profile, const Model& model, const Pace& pace) {
  double sum = 0;
  const double tie = std::clamp(ratio(pace.second_s, pace.step_s), 0.05, 0.999);
  for (std::size_t q = 0; q < profile.queues.size(); ++q) {
    const profile::QueueProfile& queue = profile.queues[q];
    double batches = model.capacity[q];
    double cv2 = 0;
    double load = tie;
    for (std::size_t i = 0; i < profile.operators.size(); ++i) {
      const profile::OperatorProfile& op = profile.operators[i];
      if (!names(queue.from, op.name) && !names(queue.to, op.name)) continue;
      const double per_batch = std::max(1.0, op.items_per_batch);
      const double cv = shape_of(op).cv;
      cv2 = std::max(cv2, cv * cv / per_batch);
      if (names(queue.from, op.name)) {
        batches = (model.capacity[q] + model.workers[i]) / per_batch;
        load = std::min(load, std::clamp(ratio(model.demand_s[i], pace.step_s), 0.05, 0.999));
      }
    }
    if (names(queue.to, "sink")) {
      const double cv = compute_cv(profile.sink);
      cv2 = std::max(cv2, cv * cv);
    }
    const double room = (batches + 1) / std::max(cv2, 0.05);
    sum += (1 - load) * std::pow(load, room) / (1 - std::pow(load, room + 1));
  }
  return sum;
}

/// Standard deviation / mean per batch of the operator that is slowest after a change.
double spread_of_slowest(const profile::Profile& profile, const Model& model) {
  double most = 0;
  double spread = 0;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (model.demand_s[i] <= std::max(most, 0.8 * model.compute_s)) continue;
    most = model.demand_s[i];
    spread =
        shape_of(profile.operators[i]).cv / std::sqrt(std::max(1.0, profile.operators[i].items_per_batch));
  }
  return spread;
}

/// Time per batch that rare slow items cost beyond what the buffers bridge: chance of one x what is not
/// bridged.
double head_of_line(const profile::Profile& profile, const Model& model) {
  double worst = 0;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const profile::OperatorProfile& op = profile.operators[i];
    const ServiceShape shape = shape_of(op);
    if (!shape.heavy_tailed()) continue;
    double buffered = 0;
    for (int q : queues_after(profile, static_cast<int>(i)))
      buffered += model.capacity[static_cast<std::size_t>(q)];
    buffered = (buffered + model.workers[i]) / std::max(1.0, op.items_per_batch);
    const double bridged = buffered * model.compute_s;
    const double chance = shape.tail_item_share * std::max(1.0, op.items_per_batch);
    worst = std::max(worst, chance * std::max(0.0, shape.tail_mean_s * model.service[i] - bridged));
  }
  return worst;
}

}  // namespace

Prediction OperationalLaws::predict(const profile::Profile& profile,
                                    const std::vector<Change>& changes) const {
  Prediction prediction;
  const double now_s = profile.sink.step_s;
  if (now_s <= 0 || profile.host.foreign_contention_share.value_or(0) > kForeignTooHigh) return prediction;
  const bool of_a_loader = std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.kind == Change::Kind::kPrefetchFactor || change.kind == Change::Kind::kInOrder ||
           (change.kind == Change::Kind::kWorkers && change.to == 0);
  });
  if (of_a_loader) return prediction;
  const InterpreterLock lock = read_interpreter_lock(profile);
  const Model before = model_of(profile);
  Model after = before;
  double interval = 0.1;
  const bool rare_items = head_of_line(profile, before) > 0.02 * now_s;
  for (const Change& change : changes) {
    apply(profile, lock, change, after);
    const bool known_op =
        change.index >= 0 && static_cast<std::size_t>(change.index) < profile.operators.size();
    const bool sleeps =
        known_op && cpu_bound_share(profile.operators[static_cast<std::size_t>(change.index)]) < 0.3;
    if (change.kind == Change::Kind::kCapacity || change.kind == Change::Kind::kProcesses) interval = 0.2;
    if (change.kind == Change::Kind::kWorkers && change.to > profile.host.cores && !sleeps) {
      interval = std::max(interval, 0.15);
    }
  }
  const Pace pace_now = pace_of(profile, lock, before);
  const Pace pace = pace_of(profile, lock, after);

  // What the laws leave unexplained today is variance: it shrinks with the buffers and with the slack.
  const double unexplained_s = std::max(0.0, now_s - pace_now.step_s);
  const double rare_now = head_of_line(profile, before);
  const double scale = rare_items
                           ? ratio(head_of_line(profile, after), rare_now)
                           : ratio(blocking(profile, after, pace), blocking(profile, before, pace_now));
  const bool nothing_buffered = profile.queues.empty();
  const double tie = ratio(pace.second_s, pace.step_s);
  const double tie_now = ratio(pace_now.second_s, pace_now.step_s);
  const double kept = nothing_buffered ? ratio(tie * tie, tie_now * tie_now) : scale;
  prediction.step_s = pace.step_s + unexplained_s * std::clamp(kept, 0.0, 1.0);
  // Where times vary, the same change gains more in one run than in another.
  interval =
      std::max(interval, rare_items ? 0.3 : 0.1 + 0.12 * std::min(1.0, spread_of_slowest(profile, after)));
  prediction.low_s =
      std::max(prediction.step_s * (1 - interval), std::min(pace.step_s, prediction.step_s) * 0.95);
  prediction.high_s = prediction.step_s * (1 + interval);
  prediction.limit = pace.limit;
  prediction.known = true;
  return prediction;
}

}  // namespace headrace::analysis
