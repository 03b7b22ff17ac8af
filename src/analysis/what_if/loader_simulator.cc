#include "headrace/analysis/what_if/loader_simulator.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "../diagnosis/numbers.h"
#include "../diagnosis/own_compute.h"
#include "abstain.h"
#include "headrace/analysis/diagnosis/demand.h"
#include "headrace/analysis/diagnosis/disturbance.h"
#include "headrace/analysis/diagnosis/pool_threads.h"
#include "headrace/analysis/what_if/loader_run.h"
#include "headrace/analysis/what_if/simulated_loader.h"
#include "other_readers.h"
#include "repeat.h"
#include "reproduction.h"

namespace headrace::analysis {
namespace {

/// What the training loop waits for most, were it to run like that.
std::string limit_of(const SimulatedLoader& model, const SimulatedRun& run) {
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
  if (model.workers == 0) return model.slowest;
  if (model.pins && run.pin_share >= kNeverRests) return model.pinning;
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

/// The hand-off is a good part of the predicted step, and was only sampled.
bool rests_on_a_sample(const profile::Profile& profile, const SimulatedLoader& model, double step_s) {
  constexpr double kGoodPart = 0.05;
  return profile.handoff_estimate && model.workers > 0 &&
         profile.handoff_estimate->pickle_cpu_s + model.receive.total_s() > kGoodPart * step_s;
}

/// Of the input's CPU time, what threads of libraries use in the loop's process. A step that computes has its own.
double pool_share_of_loop(const profile::Profile& profile) {
  const double pool_s = sleeps(profile.sink) ? pool_cpu_s(profile) : 0;
  return ratio(pool_s, pool_s + input_cpu_s(profile));
}

/// "" where another number of workers is not asked for, or is predicted. More workers bring more threads with them.
std::string unknown_pools(const profile::Profile& profile, const Loader& loader,
                          const std::vector<Change>& changes) {
  const auto changed = std::find_if(changes.begin(), changes.end(), [](const Change& change) {
    return change.kind == Change::Kind::kWorkers;
  });
  if (changed == changes.end()) return "";
  if (loader.workers == 0 && pool_share_of_loop(profile) >= kMuchInPools)
    return "a library computes in threads of its own; how many each worker would have is not known";
  constexpr double kLeastCores = 0.25;
  const double cpu_share = profile.host.cpu_share.value_or(0);
  const double pool_share = pool_share_of_workers(profile);
  if (pool_share * cpu_share * profile.host.cores < kLeastCores) return "";
  const double times = std::max(1.0, ratio(changed->to, std::max(1, loader.workers)));
  return filled_by_pools(cpu_share * times, pool_share);
}

/// Batches that spend a good part of their time on a core need one each.
bool outgrows_cores(const SimulatedLoader& model) {
  Work sum;
  for (const std::vector<Work>& lane : model.lanes) {
    for (const Work& work : lane) sum += work;
  }
  return sum.cpu_s > 0.3 * sum.total_s() && model.workers > model.cores;
}

}  // namespace

LoaderSimulator::LoaderSimulator(const profile::Profile& profile)
    : Predictor(profile), reproduction_(std::make_unique<Reproduction>()) {}
LoaderSimulator::~LoaderSimulator() = default;

bool can_simulate(const profile::Profile& profile) {
  const std::optional<Loader> loader = loader_of(profile);
  // More operators than these are none that a person wrote; composing batches of them would take seconds.
  constexpr std::size_t kMostOperators = 256;
  return loader && !loader->in_workers.empty() && loader->in_workers.size() <= kMostOperators &&
         work_per_batch_s(profile, *loader) > 0 && profile.sink.step_s > 0;
}

Prediction LoaderSimulator::predict(const std::vector<Change>& changes) const {
  const profile::Profile& profile = this->profile();
  if (!can_simulate(profile)) return abstain(kNothingRecorded);
  if (std::string why = too_disturbed(profile); !why.empty()) return abstain(std::move(why));
  const Loader loader = *loader_of(profile);
  if (std::string why = unknown_pools(profile, loader, changes); !why.empty()) return abstain(std::move(why));
  SimulatedLoader model;
  if (!make_simulated_loader(profile, loader, changes, seed_of(profile), model))
    return abstain(kNoSuchChange);
  if (loader.workers == 0 && model.workers > 0 && setting(profile, "handoff") == "unknown")
    return abstain(
        "what passing a batch from a worker costs could not be sampled, because it cannot be pickled");
  const Fit fit = reproduction_->fit([&] {
    SimulatedLoader recorded;
    make_simulated_loader(profile, loader, {}, seed_of(profile), recorded);
    return Fit{ratio(profile.sink.step_s, repeat(recorded).mean.step_s)};
  });
  const double factor = fit.measured_over_simulated;
  if (std::string why = not_reproduced(profile, factor); !why.empty()) return abstain(std::move(why));

  const Repeated<SimulatedRun> then = repeat(model);
  if (then.mean.step_s <= 0) return abstain("the changed run would come to a stop");
  Prediction prediction;
  // Half of what the model misses today is believed to stay, unless the hand-off goes, which is what it
  // misses.
  const bool handoff_goes = loader.workers > 0 && model.workers == 0;
  prediction.step_s = then.mean.step_s * (handoff_goes ? 1 : std::sqrt(factor));
  const bool quiet = !has_neighbours(profile.host) && !outgrows_cores(model);
  const double by_model = (quiet ? 0.1 : 0.15) + (held_up_by_lock(profile) ? 0.08 : 0) +
                          (rests_on_a_sample(profile, model, prediction.step_s) ? 0.1 : 0);
  const double interval = std::min(0.6, by_model + 1.5 * then.spread + 0.5 * std::abs(std::log(factor)));
  // A worker that wakes up for every batch takes longer over it than a loop that never rests.
  const double awake = handoff_goes ? 0.5 * std::min(1.0, then.mean.wait_share) : 0;
  // What it would be if the neighbours gave way: they may, as far as the scheduler shares evenly.
  const double at_best_s =
      step_with_cores(model, free_cores(profile.host, model.cores).yielded, then.mean.step_s);
  const double yielding = ratio(at_best_s, then.mean.step_s);
  prediction.low_s = prediction.step_s * yielding * std::max(0.1, 1 - interval - awake);
  prediction.high_s = prediction.step_s * (1 + interval);
  widen_for_shared_waits(profile, changes, prediction);
  prediction.limit = limit_of(model, then.mean);
  prediction.known = true;
  return prediction;
}

}  // namespace headrace::analysis
