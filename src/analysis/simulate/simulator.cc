#include "headrace/analysis/simulate/simulator.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "../read/numbers.h"
#include "../read/own_compute.h"
#include "abstain.h"
#include "headrace/analysis/model/network.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/demand.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/simulate/network_run.h"
#include "repeat.h"
#include "reproduction.h"

namespace headrace::analysis {
namespace {

/// A simulated step that is so much off is one of another pipeline: the model misses by so much where CPU work fits the
/// cores. Estimates beside it miss by it, too, or by the larger error where it does not fit.
constexpr double kModelError = 0.1;
constexpr double kErrorBesideOthers = 0.15;
/// Standard deviations that hold nine in ten differences between what the recorded items say and another run of as
/// many.
constexpr double kNineInTen = 2.33;
/// Share of the predicted step, to either side.
constexpr double kWidest = 0.6;
/// Per second. Two threads that each read so often were measured 1.2 to 1.5 times as slow as one.
constexpr double kManyReads = 20'000;
constexpr const char* kHandsOverOften =
    "each of many small reads gives up the interpreter lock; what threads gain beside them is not known";

/// The largest wait of the training loop, were it to run like that.
std::string limit_of(const Network& network, const SimulatedRun& run) {
  constexpr GateThresholds kHealthy;
  if (run.wait_share - run.serve_share < kHealthy.starved_share)
    return run.serve_share >= kHealthy.served_share && !network.serves.empty() ? network.serves : "sink";
  if (std::max(run.cpu_share, run.lock_share) >= CpuThresholds{}.spent) return "cpu";
  if (run.load_share >= 0.5 * run.wait_share) return network.slowest_in_sink;
  const auto busiest = std::max_element(run.busy.begin(), run.busy.end());
  if (busiest == run.busy.end()) return "sink";
  const bool serves = *busiest < kNearlyAll && run.serve_share >= 0.5 * run.wait_share;
  if (serves && !network.serves.empty()) return network.serves;
  return network.stages[static_cast<std::size_t>(busiest - run.busy.begin())].name;
}

/// Turns that bring the waits for the lock to those that were recorded.
void fit_turns(Network& network) {
  constexpr int kRounds = 4;
  constexpr double kMaxTurns = 64;
  const auto fit = [&](LockUse& lock, double waited_s) {
    if (!lock.waited_s) return;
    const double factor = waited_s > 0 ? std::clamp(*lock.waited_s / waited_s, 0.25, 4.0) : 1;
    lock.turns = static_cast<int>(std::clamp(std::round(lock.turns * factor), 1.0, kMaxTurns));
  };
  for (int round = 0; round < kRounds; ++round) {
    const SimulatedRun run = simulate(network, network.batches(), 0);
    if (run.lock_share <= 0) return;
    for (std::size_t s = 0; s < network.stages.size(); ++s) fit(network.stages[s].lock, run.lock_waited_s[s]);
    fit(network.sink_lock, run.sink_lock_waited_s);
  }
}

Fit fit_when(const profile::Profile& profile, bool ordered) {
  Network network;
  if (!make_network(profile, {}, ordered, seed_of(profile), network)) return {};
  fit_turns(network);
  Fit fit{ratio(profile.sink.step_s, repeat(network).mean.step_s),
          ordered,
          network.order_known,
          {},
          network.sink_lock.turns};
  for (const Network::Stage& stage : network.stages) fit.lock_turns.push_back(stage.lock.turns);
  return fit;
}

/// Stages beyond those that were recorded do what the training loop's thread did.
void set_turns(const Fit& fit, Network& network) {
  network.sink_lock.turns = fit.sink_lock_turns;
  for (std::size_t s = 0; s < network.stages.size(); ++s) {
    network.stages[s].lock.turns = s < fit.lock_turns.size() ? fit.lock_turns[s] : fit.sink_lock_turns;
  }
}

/// Whether several workers keep the order is not recorded for threads that the user wrote. If the run is
/// reproduced only with order, they keep it.
Fit fit_of(const profile::Profile& profile) {
  Fit as_ready = fit_when(profile, false);
  if (as_ready.order_known || as_ready.measured_over_simulated < 1 + kModelError) return as_ready;
  Fit ordered = fit_when(profile, true);
  const bool better =
      ordered.measured_over_simulated > 0 && std::abs(std::log(ordered.measured_over_simulated)) <
                                                 0.5 * std::abs(std::log(as_ready.measured_over_simulated));
  return better ? ordered : as_ready;
}

/// Threads that compute more than the cores bear, or on one interpreter lock.
bool shares_cores(const SimulatedRun& run) {
  return std::max(run.cpu_share, run.lock_share) >= CpuThresholds{}.spent;
}

double read_calls(const profile::OperatorProfile& op) {
  double calls = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    calls += static_cast<double>(worker.read_calls.value_or(0));
  }
  return calls;
}

/// Rate of all threads if a step takes `step_s`.
double reads_per_s(const profile::Profile& profile, double step_s) {
  double calls = 0;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor != profile::Executor::process) calls += read_calls(op);
  }
  return ratio(calls, static_cast<double>(profile.sink.steps) * step_s);
}

bool free_threaded(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.kind == Change::Kind::kFreeThreaded && change.to != 0;
  });
}

/// Share of its time from which on an operator computes.
constexpr double kOperatorComputes = 0.3;

/// Threads of Python that compute beside others. What they lose when they hand over the lock, cores and caches is not
/// simulated: of the change that a simulation finds, half was measured (docs/benchmarks.md).
bool shares_lock(const profile::Profile& profile, const profile::OperatorProfile& op) {
  const double waits_s = op.lock_wait_s.value_or(0) + op.run_queue_wait_s.value_or(0);
  return profile.host.gil_share && waits_s >= kHardly * op.busy_s && cpu_bound_share(op) >= kOperatorComputes;
}

/// The operator whose number of threads changes, of several one that shares the lock; null: none.
const profile::OperatorProfile* changes_threads(const profile::Profile& profile,
                                                const std::vector<Change>& changes) {
  const profile::OperatorProfile* found = nullptr;
  for (const Change& change : changes) {
    if (change.kind != Change::Kind::kWorkers || change.index < 0 ||
        static_cast<std::size_t>(change.index) >= profile.operators.size())
      continue;
    const profile::OperatorProfile& op = profile.operators[static_cast<std::size_t>(change.index)];
    if (op.executor == profile::Executor::process) continue;
    if (found == nullptr || shares_lock(profile, op)) found = &op;
  }
  return free_threaded(changes) ? nullptr : found;
}

/// Threads that hand the lock over at each of many reads lose time that nothing recorded tells: another number of them was
/// measured between 0.7 and 4.5 times as fast.
bool hands_over_often(const profile::Profile& profile, const profile::OperatorProfile& op) {
  return profile.host.gil_share && ratio(read_calls(op), op.busy_s) >= kManyReads;
}

/// More threads of an operator beside those: a gain of 1.5x was measured as one of 1.05x.
bool gains_beside_hand_overs(const profile::Profile& profile, double step_s) {
  return profile.host.gil_share && step_s * kWorthIt < profile.sink.step_s &&
         reads_per_s(profile, step_s) >= kManyReads;
}

bool makes_ahead(const Network& network) {
  return std::any_of(network.stages.begin(), network.stages.end(),
                     [](const Network::Stage& stage) { return stage.window > 0; });
}

/// Finished batches wait for their worker's interpreter lock: workers in pure Python, whose threads take
/// turns in ways that are not simulated.
bool held_up_by_lock(const profile::Profile& profile) {
  constexpr double kHeldUp_s = 3e-3;
  if (!profile.handoff) return false;
  return profile.handoff->receive_s - profile.handoff->receive_cpu_s > kHeldUp_s;
}

/// The hand-off is a good part of the predicted step, and was only sampled.
bool rests_on_a_sample(const profile::Profile& profile, const Network& network, double step_s) {
  constexpr double kGoodPart = 0.05;
  return profile.handoff_estimate && makes_ahead(network) &&
         profile.handoff_estimate->pickle_cpu_s + network.receive.total_s() > kGoodPart * step_s;
}

/// Share of the input's CPU time in library threads of the loop's process. A step that computes has its own.
double pool_share_of_loop(const profile::Profile& profile) {
  const double pool_s = sleeps(profile.sink) ? pool_cpu_s(profile) : 0;
  return ratio(pool_s, pool_s + input_cpu_s(profile));
}

/// "" where another number of workers is not asked for, or is predicted. More workers bring more threads with them.
std::string unknown_pools(const profile::Profile& profile, const std::optional<Loader>& loader,
                          const std::vector<Change>& changes) {
  const double cpu_share = profile.host.cpu_share.value_or(0);
  if (!loader) return filled_by_pools(cpu_share, pool_share_of_process(profile));
  const auto changed = std::find_if(changes.begin(), changes.end(), [](const Change& change) {
    return change.kind == Change::Kind::kWorkers;
  });
  if (changed == changes.end()) return "";
  if (loader->workers == 0 && pool_share_of_loop(profile) >= kMostOf)
    return "a library computes in threads of its own; how many each worker would have is not known";
  constexpr double kMinCores = 0.25;
  const double pool_share = pool_share_of_workers(profile);
  if (pool_share * cpu_share * profile.host.cores < kMinCores) return "";
  const double times = std::max(1.0, ratio(changed->to, std::max(1, loader->workers)));
  return filled_by_pools(cpu_share * times, pool_share);
}

/// The model's own error beside what it shows on the run as it was recorded. Sources of error are independent: their
/// squares add up.
double error_by_model(const profile::Profile& profile, const std::vector<Change>& changes,
                      const Network& network, const SimulatedRun& then, double step_s) {
  const bool quiet = !has_neighbours(profile.host) && !shares_cores(then);
  const auto asked = [&](Change::Kind kind) {
    return std::any_of(changes.begin(), changes.end(),
                       [kind](const Change& change) { return change.kind == kind; });
  };
  double squares = std::pow(quiet ? kModelError : kErrorBesideOthers, 2);
  const auto add = [&](bool applies, double error) { squares += applies ? error * error : 0; };
  add(network.guessed_queue, kModelError);
  add(asked(Change::Kind::kProcesses), kModelError);
  // How slow items come together decides what buffers hide.
  add(asked(Change::Kind::kCapacity) || asked(Change::Kind::kWindow), kModelError);
  add(held_up_by_lock(profile), kModelError);
  add(rests_on_a_sample(profile, network, step_s), kErrorBesideOthers);
  return std::sqrt(squares);
}

bool nothing_recorded(const profile::Profile& profile, const std::optional<Loader>& loader) {
  return profile.operators.empty() || profile.sink.step_s <= 0 ||
         (loader && work_per_batch_s(profile, *loader) <= 0);
}

bool equal(const std::vector<Change>& a, const std::vector<Change>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Change& x, const Change& y) {
    return x.kind == y.kind && x.index == y.index && x.to == y.to && x.factor == y.factor;
  });
}

}  // namespace

Simulator::Simulator(const profile::Profile& profile)
    : Predictor(profile), reproduction_(std::make_unique<Reproduction>()) {}
Simulator::~Simulator() = default;

Prediction Simulator::predict(const std::vector<Change>& changes) const {
  const profile::Profile& profile = this->profile();
  const std::optional<Loader> loader = loader_of(profile);
  if (nothing_recorded(profile, loader)) return abstain(kNothingRecorded);
  if (setting(profile, kHandsOver) == "thread")
    return abstain("a thread hands the batches on, so the step was not recorded");
  if (std::string why = more_readers_in_vain(profile, changes); !why.empty()) return abstain(std::move(why));
  if (std::string why = unknown_pools(profile, loader, changes); !why.empty()) return abstain(std::move(why));
  const profile::OperatorProfile* const threads = loader ? nullptr : changes_threads(profile, changes);
  if (threads != nullptr && hands_over_often(profile, *threads)) return abstain(kHandsOverOften);
  const Fit fit = reproduction_->fit([&] { return fit_of(profile); });
  const double factor = fit.measured_over_simulated;
  Network network;
  if (!make_network(profile, changes, fit.ordered, seed_of(profile), network)) return abstain(kNoSuchChange);
  const bool had_workers = loader && loader->workers > 0;
  if (!had_workers && makes_ahead(network) && setting(profile, "handoff") == "unknown")
    return abstain(
        "what passing a batch from a worker costs could not be sampled, because it cannot be pickled");
  if (std::string why = not_reproduced(profile, factor); !why.empty()) return abstain(std::move(why));

  set_turns(fit, network);
  const Repeated then = repeat(network);
  if (then.mean.step_s <= 0) return abstain("the changed run would come to a stop");
  Prediction prediction;
  // Threads' losses beyond the model stay with another number of them; half of other misses is carried over, unless
  // the hand-off goes, which is what the model misses.
  const bool handoff_goes = had_workers && !makes_ahead(network);
  prediction.step_s = then.mean.step_s * (handoff_goes                       ? 1
                                          : threads != nullptr && factor > 1 ? factor
                                                                             : std::sqrt(factor));
  if (threads != nullptr && shares_lock(profile, *threads))
    prediction.step_s = std::sqrt(prediction.step_s * profile.sink.step_s);
  if (threads != nullptr && gains_beside_hand_overs(profile, prediction.step_s))
    return abstain(kHandsOverOften);
  const double by_model = error_by_model(profile, changes, network, then.mean, prediction.step_s);
  // The step if the neighbours gave way: they may, as far as the scheduler shares evenly.
  const double at_best_s =
      step_with_cores(network, free_cores(profile.host, network.cores).yielded, then.mean.step_s);
  const double error = std::hypot(by_model, kNineInTen * then.spread, 0.5 * std::log(factor));
  const double yielded = ratio(at_best_s, then.mean.step_s);
  prediction.yielded_s = prediction.step_s * yielded;
  const double faster = std::hypot(error, 1 - yielded);
  prediction.low_s = prediction.step_s * (1 - std::min(kWidest, faster));
  prediction.high_s = prediction.step_s * (1 + std::min(kWidest, error));
  widen_for_shared_waits(profile, changes, prediction);
  // Operators that are only known by the levels of the queues around them may be as slow as the one that limits.
  if (level_samples(profile)) prediction.high_s = std::max(prediction.high_s, profile.sink.step_s);
  prediction.limit = limit_of(network, then.mean);
  prediction.known = true;
  return prediction;
}

std::unique_ptr<Predictor> predictor_for(const profile::Profile& profile) {
  return std::make_unique<Simulator>(profile);
}

Prediction CachedPredictor::predict(const std::vector<Change>& changes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, prediction] : known_) {
    if (equal(known, changes)) return prediction;
  }
  return known_.emplace_back(changes, predictor_->predict(changes)).second;
}

}  // namespace headrace::analysis
