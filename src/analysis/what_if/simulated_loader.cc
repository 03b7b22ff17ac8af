#include "headrace/analysis/what_if/simulated_loader.h"

#include <algorithm>

#include "../diagnosis/device_lag.h"
#include "../diagnosis/numbers.h"
#include "headrace/analysis/diagnosis/disturbance.h"
#include "headrace/analysis/what_if/beside_others.h"
#include "limits.h"
#include "recorded_batches.h"
#include "repeat.h"
#include "training_step.h"

namespace headrace::analysis {
namespace {

/// Handing a batch over and receiving it, where that was never measured (no workers yet): one tensor, by file
/// descriptor.
constexpr Work kUnmeasuredReceive{3e-4, 7e-4};
constexpr double kUnmeasuredPickle_s = 3e-4;
/// Each tensor beyond the first: its descriptor is packed, passed and opened.
constexpr Work kReceiveTensor{1.5e-4, 2e-4};
constexpr double kPickleTensor_s = 5e-5;
/// Bytes of arrays are copied into the message and into the pipe, on either side.
constexpr double kPipe_s_per_byte = 1.5e-9;
/// Unpickling objects, per time that pickling took (measured: 1.9 to 3.1, dicts, lists and a tokenizer's
/// encodings).
constexpr double kUnpickle = 2;
/// Beyond its CPU time, receiving waits for the worker's answer; more of that is load, not latency.
constexpr double kLongestLatency_s = 1.2e-3;
/// A worker whose interpreter lock is taken answers late, and only while it works: of what was measured under
/// load, not all is left where workers rest (all of it predicted twice the step that was measured, none of it
/// 14 % too little).
constexpr double kLongestLocked_s = 15e-3;
constexpr double kLockedAgain = 0.5;
/// What the loader itself does per batch without workers.
constexpr double kWithoutWorkers_s = 3e-5;
constexpr std::size_t kComposedBatches = 512;
constexpr std::size_t kMostBatches = 4096;
/// Of making a batch: what takes less is as good as constant.
constexpr double kHardlyMatters = 0.01;

/// What the changes come down to.
struct LoaderEffects {
  std::vector<double> service;  ///< per operator
  std::vector<bool> alike;
  double copy_saved_s = 0;
};

bool apply(const profile::Profile& profile, const Loader& loader, const Change& change,
           SimulatedLoader& model, LoaderEffects& effects) {
  const bool of_workers =
      std::find(loader.in_workers.begin(), loader.in_workers.end(), change.index) != loader.in_workers.end();
  switch (change.kind) {
    case Change::Kind::kWorkers:
      if (!of_workers) return false;
      model.workers = std::clamp(change.to, 0, kMostWorkers);
      return true;
    case Change::Kind::kWindow:
      if (model.workers == 0) return false;
      model.per_worker = std::max(change.to, 1);
      return true;
    case Change::Kind::kOrder:
      if (model.workers == 0) return false;
      model.ordered = change.to != 0;
      return true;
    case Change::Kind::kService:
    case Change::Kind::kAlike: {
      if (change.index < 0 || static_cast<std::size_t>(change.index) >= profile.operators.size())
        return false;
      const std::size_t at = static_cast<std::size_t>(change.index);
      if (change.kind == Change::Kind::kAlike && of_workers) {
        effects.alike[at] = true;
        return true;
      }
      effects.service[at] *= change.factor;
      if (change.index == loader.to_device) {
        effects.copy_saved_s = profile.operators[at].demand_s * (1 - change.factor);
      }
      return true;
    }
    default:
      return false;
  }
}

/// Waiting for a core, per CPU time, of the workers: the training step waits like that too.
double queue_wait_per_cpu(const profile::Profile& profile, const Loader& loader) {
  double cpu_s = 0;
  double queued_s = 0;
  for (int i : loader.in_workers) {
    const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(i)];
    const TimeSplit split = split_of(op, profile.host);
    cpu_s += split.cpu_share * op.busy_s;
    queued_s += split.queue_share * op.busy_s;
  }
  return ratio(queued_s, cpu_s);
}

void add_lanes(const profile::Profile& profile, const Loader& loader, const LoaderEffects& effects,
               RecordedBatches::Random& random, SimulatedLoader& model) {
  const double work_s = work_per_batch_s(profile, loader);
  std::vector<RecordedBatches> operators;
  std::size_t lanes = 1;
  std::size_t length = 0;
  double largest_s = -1;
  bool composes = false;
  for (int i : loader.in_workers) {
    const std::size_t at = static_cast<std::size_t>(i);
    const profile::OperatorProfile& op = profile.operators[at];
    RecordedBatches& batches =
        operators.emplace_back(op, profile.host, op.items_per_batch, effects.service[at], effects.alike[at]);
    if (op.demand_s * op.workers < kHardlyMatters * work_s) batches.use_mean();
    lanes = std::max(lanes, batches.lanes());
    composes = composes || !batches.whole();
    if (batches.whole()) length = std::max(length, batches.length());
    const double takes_s = op.demand_s * effects.service[at];
    if (takes_s <= largest_s) continue;
    largest_s = takes_s;
    model.slowest = op.name;
  }
  if (composes) length = std::max(length, std::max<std::size_t>(8, kComposedBatches / lanes));
  length = std::clamp<std::size_t>(length, 1, std::max<std::size_t>(8, kMostBatches / lanes));
  model.lanes.assign(lanes, {});
  for (std::size_t number = 0; number < length; ++number) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      Work batch;
      for (const RecordedBatches& each : operators) batch += each.batch(lane, number, random);
      model.lanes[lane].push_back(batch);
    }
  }
}

/// What no longer runs inside the step is gone from it; the rest keeps its proportions.
void add_steps(const profile::Profile& profile, double waits_per_cpu, double saved_s,
               SimulatedLoader& model) {
  const profile::SinkProfile& sink = profile.sink;
  const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), sink.compute_s));
  const double queue_share = std::min(1 - cpu_share, cpu_share * waits_per_cpu);
  const double kept = std::max(0.0, 1 - ratio(saved_s, sink.compute_s));
  model.steps = training_steps(sink, sink.compute_s, queue_share, profile.host);
  for (Work& step : model.steps) step = step * kept;
  model.device_s = device_behind_s(sink);
}

/// What a sampled batch says about a hand-off that does not happen yet.
void add_estimate(const profile::HandoffEstimate& sampled, SimulatedLoader& model) {
  const double more = std::max(0.0, sampled.tensors - 1);
  const double piped_s = sampled.message_bytes * kPipe_s_per_byte;
  model.receive += kReceiveTensor * more;
  model.receive.cpu_s += kUnpickle * sampled.pickle_cpu_s + piped_s;
  model.pickle_cpu_s += kPickleTensor_s * more;
  // Pickling objects holds the worker's interpreter lock, so it goes on beside a batch that waits, and delays
  // one that computes.
  const double pickled_s = sampled.pickle_cpu_s + piped_s;
  for (std::vector<Work>& lane : model.lanes) {
    for (Work& batch : lane) batch.cpu_s += std::max(0.0, pickled_s - batch.off_s);
  }
}

void add_handoff(const profile::Profile& profile, const Loader& loader, const LoaderEffects& effects,
                 SimulatedLoader& model) {
  const auto service = [&](int index) {
    return index >= 0 ? effects.service[static_cast<std::size_t>(index)] : 1.0;
  };
  const auto name = [&](int index) {
    return index >= 0 ? profile.operators[static_cast<std::size_t>(index)].name : std::string();
  };
  model.receive = kUnmeasuredReceive;
  model.pickle_cpu_s = kUnmeasuredPickle_s;
  if (profile.handoff && profile.handoff->batches > 0) {
    const profile::Handoff& handoff = *profile.handoff;
    model.receive.cpu_s = handoff.receive_cpu_s;
    const double latency_s = std::max(0.0, handoff.receive_s - handoff.receive_cpu_s);
    model.receive.off_s = std::min(latency_s, kLongestLatency_s);
    model.locked_s = kLockedAgain * std::clamp(latency_s - kLongestLatency_s, 0.0, kLongestLocked_s);
    model.pickle_cpu_s = handoff.pickle_cpu_s;
  } else if (profile.handoff_estimate && model.workers > 0) {
    add_estimate(*profile.handoff_estimate, model);
  }
  model.receive = model.receive * service(loader.handoff);
  if (loader.pin >= 0) {
    const profile::OperatorProfile& pin = profile.operators[static_cast<std::size_t>(loader.pin)];
    const double cpu_s = std::min(pin.demand_s, ratio(pin.cpu_s.value_or(0), pin.busy_s) * pin.demand_s);
    model.pins = true;
    model.pin = Work{pin.demand_s - cpu_s, cpu_s} * service(loader.pin);
  }
  if (loader.sampler >= 0) {
    model.draw.cpu_s =
        profile.operators[static_cast<std::size_t>(loader.sampler)].demand_s * service(loader.sampler);
  }
  model.handoff = name(loader.handoff).empty() ? "handoff" : name(loader.handoff);
  model.pinning = name(loader.pin);
  model.sampler = name(loader.sampler);
}

}  // namespace

double SimulatedLoader::variation() const { return variation_of(lanes); }

void SimulatedLoader::draw_again(std::mt19937_64& random) { analysis::draw_again(lanes, random); }

bool make_simulated_loader(const profile::Profile& profile, const Loader& loader,
                           const std::vector<Change>& changes, std::uint64_t seed, SimulatedLoader& model) {
  model = SimulatedLoader{};
  model.workers = std::min(loader.workers, kMostWorkers);
  model.per_worker = loader.per_worker;
  model.ordered = loader.ordered;
  model.cores = free_cores(profile.host, kMostWorkers).held;
  model.pool_cpu_s = pool_work_s(profile);
  LoaderEffects effects;
  effects.service.assign(profile.operators.size(), 1);
  effects.alike.assign(profile.operators.size(), false);
  for (const Change& change : changes) {
    if (!apply(profile, loader, change, model, effects)) return false;
  }
  model.per_worker =
      std::clamp(model.per_worker, 1, std::max(1, kLongestWindow / std::max(1, model.workers)));

  RecordedBatches::Random random(seed);
  add_lanes(profile, loader, effects, random, model);
  add_steps(profile, queue_wait_per_cpu(profile, loader), effects.copy_saved_s, model);
  add_handoff(profile, loader, effects, model);
  if (model.workers == 0) {
    model.pins = false;
    model.receive = {0, kWithoutWorkers_s};
  }
  return true;
}

}  // namespace headrace::analysis
