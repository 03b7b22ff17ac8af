#include "headrace/analysis/what_if/loader_simulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "../diagnosis/numbers.h"
#include "headrace/analysis/what_if/loader_model.h"
#include "headrace/analysis/what_if/loader_run.h"

namespace headrace::analysis {
namespace {

constexpr double kForeignTooHigh = 0.2;
constexpr double kForeignNoticed = 0.05;
/// A recorded run that the model misses by more is not one that it can change.
constexpr double kLargestMiss = 1.6;
constexpr int kBatches = 200;
/// Where times vary, longer runs: a rare item must have its chance.
constexpr int kBatchesWhereVaried = 600;
constexpr double kVaried = 0.4;
/// Runs along the record, from different places; and runs of what it is made of, drawn again.
constexpr std::size_t kAlong = 2;
constexpr std::size_t kDrawnAgain = 4;
/// Batches that stay together when they are drawn again.
constexpr std::size_t kBlock = 4;

struct Repeated {
  SimulatedRun mean;
  double spread = 0;  ///< of one run's step, relative
};

double variation_of(const LoaderModel& model) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const std::vector<Work>& lane : model.lanes) {
    for (const Work& work : lane) {
      sum += work.total_s();
      squares += work.total_s() * work.total_s();
      count += 1;
    }
  }
  const double mean = sum / count;
  return ratio(std::sqrt(std::max(0.0, squares / count - mean * mean)), mean);
}

/// The same batches, drawn again in blocks: another run of the same loader (a block bootstrap).
LoaderModel drawn_again(const LoaderModel& model, std::mt19937_64& random) {
  LoaderModel again = model;
  for (std::size_t l = 0; l < model.lanes.size(); ++l) {
    const std::vector<Work>& from = model.lanes[l];
    std::vector<Work>& to = again.lanes[l];
    for (std::size_t i = 0; i < to.size(); i += kBlock) {
      const std::size_t begin = random() % from.size();
      for (std::size_t k = i; k < std::min(i + kBlock, to.size()); ++k) {
        to[k] = from[(begin + k - i) % from.size()];
      }
    }
  }
  return again;
}

/// Runs along the record give the step: their order is the true one. All runs together give what runs differ
/// by.
Repeated repeat(const LoaderModel& model) {
  const bool varied = variation_of(model) > kVaried;
  const int batches = varied ? kBatchesWhereVaried : kBatches;
  std::vector<double> steps;
  Repeated repeated;
  for (std::size_t run = 0; run < kAlong; ++run) {
    const SimulatedRun one = simulate(model, batches, run * model.lanes.front().size() / kAlong);
    steps.push_back(one.step_s);
    const double part = 1.0 / kAlong;
    repeated.mean.step_s += part * one.step_s;
    repeated.mean.wait_share += part * one.wait_share;
    repeated.mean.serve_share += part * one.serve_share;
    repeated.mean.worker_share += part * one.worker_share;
    repeated.mean.pin_share += part * one.pin_share;
    repeated.mean.cpu_share += part * one.cpu_share;
  }
  std::mt19937_64 random(1);
  for (std::size_t run = 0; run < (varied ? kDrawnAgain : 0); ++run) {
    steps.push_back(simulate(drawn_again(model, random), kBatches, 0).step_s);
  }
  double squares = 0;
  for (double step : steps) squares += (step - repeated.mean.step_s) * (step - repeated.mean.step_s);
  repeated.spread = ratio(std::sqrt(squares / static_cast<double>(steps.size() - 1)), repeated.mean.step_s);
  return repeated;
}

/// What the training loop waits for most, were it to run like that.
std::string limit_of(const LoaderModel& model, const SimulatedRun& run) {
  constexpr double kNeverRests = 0.85;
  constexpr double kHealthyWait = 0.05;
  constexpr double kHealthyServe = 0.15;
  const bool draws_most = model.draw.total_s() > model.receive.total_s();
  const std::string& serves = draws_most && !model.sampler.empty() ? model.sampler : model.handoff;
  if (run.wait_share - run.serve_share < kHealthyWait && !model.pins) {
    return run.serve_share >= kHealthyServe ? serves : "sink";
  }
  if (run.wait_share < kHealthyWait) return "sink";
  if (run.cpu_share >= 0.95) return "cpu";
  if (model.num_workers == 0) return model.slowest;
  if (model.pins && run.pin_share >= kNeverRests) return model.pin_memory;
  if (run.worker_share < kNeverRests && run.serve_share >= 0.5 * run.wait_share) return serves;
  return model.slowest;
}

/// Finished batches wait for their worker's interpreter lock: workers in pure Python, whose threads take
/// turns in ways that are not simulated.
bool held_up_by_lock(const profile::Profile& profile) {
  constexpr double kHeldUp_s = 3e-3;
  if (!profile.handoff) return false;
  return profile.handoff->receive_s - profile.handoff->receive_cpu_s > kHeldUp_s;
}

/// Batches that spend a good part of their time on a core need one each.
bool outgrows_cores(const LoaderModel& model) {
  Work sum;
  for (const std::vector<Work>& lane : model.lanes) {
    for (const Work& work : lane) sum += work;
  }
  return sum.cpu_s > 0.3 * sum.total_s() && model.num_workers > model.cores;
}

/// Every figure that a simulation starts from, so that another profile is never taken for the same.
std::string figures_of(const profile::Profile& profile) {
  std::string bytes;
  const auto add = [&bytes](double value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof raw);
  };
  add(profile.sink.step_s);
  add(profile.sink.compute_s);
  add(profile.sink.compute_cpu_s.value_or(-1));
  add(static_cast<double>(profile.sink.getnext_wait.count));
  add(profile.host.cores);
  add(profile.host.foreign_contention_share.value_or(-1));
  if (profile.handoff) {
    for (double value :
         {profile.handoff->receive_s, profile.handoff->receive_cpu_s, profile.handoff->pickle_cpu_s}) {
      add(value);
    }
  }
  for (const profile::Setting& each : profile.settings) bytes += each.parameter + "=" + each.value + ";";
  for (const profile::OperatorProfile& op : profile.operators) {
    bytes += op.name + ";";
    for (double value :
         {op.demand_s, op.busy_s, op.cpu_s.value_or(-1), op.run_queue_wait_s.value_or(-1), op.items_per_batch,
          static_cast<double>(op.items), static_cast<double>(op.workers)}) {
      add(value);
    }
  }
  return bytes;
}

std::uint64_t seed_of(const profile::Profile& profile) {
  return profile.sink.getnext_wait.count * 2654435761U + 1;
}

}  // namespace

bool can_simulate(const profile::Profile& profile) {
  const std::optional<Loader> loader = loader_of(profile);
  return loader && !loader->in_workers.empty() && work_per_batch_s(profile, *loader) > 0 &&
         profile.sink.step_s > 0;
}

double LoaderSimulator::reproduce(const profile::Profile& profile, const Loader& loader) const {
  const std::string figures = figures_of(profile);
  {
    const std::lock_guard lock(mutex_);
    if (reproduced_.figures == figures) return reproduced_.measured_over_simulated;
  }
  LoaderModel model;
  make_loader_model(profile, loader, {}, seed_of(profile), model);
  const double factor = ratio(profile.sink.step_s, repeat(model).mean.step_s);
  const std::lock_guard lock(mutex_);
  reproduced_ = {figures, factor};
  return factor;
}

Prediction LoaderSimulator::predict(const profile::Profile& profile,
                                    const std::vector<Change>& changes) const {
  Prediction prediction;
  const double foreign = profile.host.foreign_contention_share.value_or(0);
  if (!can_simulate(profile) || foreign > kForeignTooHigh) return prediction;
  const Loader loader = *loader_of(profile);
  LoaderModel model;
  if (!make_loader_model(profile, loader, changes, seed_of(profile), model)) return prediction;
  const double factor = reproduce(profile, loader);
  if (factor > kLargestMiss || factor < 1 / kLargestMiss) return prediction;

  const Repeated then = repeat(model);
  if (then.mean.step_s <= 0) return prediction;
  // Half of what the model misses today is believed to stay, unless the hand-off goes, which is what it
  // misses.
  const bool handoff_goes = loader.num_workers > 0 && model.num_workers == 0;
  prediction.step_s = then.mean.step_s * (handoff_goes ? 1 : std::sqrt(factor));
  const bool quiet = foreign < kForeignNoticed && !outgrows_cores(model);
  const double by_model = (quiet ? 0.1 : 0.15) + (held_up_by_lock(profile) ? 0.08 : 0);
  const double interval = std::min(0.6, by_model + 1.5 * then.spread + 0.5 * std::abs(std::log(factor)));
  // A worker that wakes up for every batch takes longer over it than a loop that never rests.
  const double awake = handoff_goes ? 0.5 * std::min(1.0, then.mean.wait_share) : 0;
  prediction.low_s = prediction.step_s * std::max(0.1, 1 - interval - awake);
  prediction.high_s = prediction.step_s * (1 + interval);
  prediction.limit = limit_of(model, then.mean);
  prediction.known = true;
  return prediction;
}

}  // namespace headrace::analysis
