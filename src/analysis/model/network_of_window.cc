#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../read/numbers.h"
#include "limits.h"
#include "network_of.h"

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
/// Time of the loader itself per batch without workers.
constexpr double kWithoutWorkers_s = 3e-5;

/// The loader and the step after the changes.
struct Changed {
  Loader loader;
  Effects effects;
  double copy_saved_s = 0;
};

bool apply(const profile::Profile& profile, const Change& change, Changed& changed) {
  Loader& loader = changed.loader;
  const bool of_workers =
      std::find(loader.in_workers.begin(), loader.in_workers.end(), change.index) != loader.in_workers.end();
  switch (change.kind) {
    case Change::Kind::kWorkers:
      if (!of_workers) return false;
      loader.workers = std::clamp(change.to, 0, kMaxWorkers);
      return true;
    case Change::Kind::kWindow:
      if (loader.workers == 0) return false;
      loader.per_worker = std::max(change.to, 1);
      return true;
    case Change::Kind::kOrder:
      if (loader.workers == 0) return false;
      loader.ordered = change.to != 0;
      return true;
    default:
      if (!changed.effects.apply(change)) return false;
      if (change.kind == Change::Kind::kService && change.index == loader.to_device)
        changed.copy_saved_s =
            profile.operators[static_cast<std::size_t>(change.index)].demand_s * (1 - change.factor);
      return true;
  }
}

/// Adds a sampled batch's cost of a hand-off that does not happen yet.
void add_estimate(const profile::HandoffEstimate& sampled, Network::Stage& makers, Work& receive) {
  const double more = std::max(0.0, sampled.tensors - 1);
  const double piped_s = sampled.message_bytes * kPipe_s_per_byte;
  receive += kReceiveTensor * more;
  receive.cpu_s += kUnpickle * sampled.pickle_cpu_s + piped_s;
  makers.hands_on_cpu_s += kPickleTensor_s * more;
  // Pickling objects holds the worker's interpreter lock, so it goes on beside a batch that waits, and delays
  // one that computes.
  const double pickled_s = sampled.pickle_cpu_s + piped_s;
  for (WorkSequence& lane : makers.lanes) {
    for (Work& batch : lane) batch.cpu_s += std::max(0.0, pickled_s - batch.off_s);
  }
}

class WindowNetwork {
 public:
  WindowNetwork(const profile::Profile& profile, const Changed& changed, std::uint64_t seed, Network& network)
      : profile_(profile),
        changed_(changed),
        loader_(changed.loader),
        works_(profile, changed.effects, no_lock(profile), seed),
        network_(network) {}

  void build() {
    std::vector<WorkSequence> lanes = works_.lanes(loader_.in_workers, 1, kMaxWorkers);
    const std::string slowest = works_.largest(loader_.in_workers);
    if (loader_.workers > 0) {
      add_workers(std::move(lanes), slowest);
    } else {
      load_in_sink(lanes, slowest);
    }
    add_steps();
    if (loader_.sampler >= 0) {
      network_.draw = work_of(operator_at(loader_.sampler)) * service(loader_.sampler);
    }
    const bool draws_most = network_.draw.total_s() > network_.receive.total_s();
    network_.serves = draws_most             ? operator_at(loader_.sampler).name
                      : loader_.handoff >= 0 ? operator_at(loader_.handoff).name
                                             : "handoff";
  }

 private:
  const profile::OperatorProfile& operator_at(int index) const {
    return profile_.operators[static_cast<std::size_t>(index)];
  }
  double service(int index) const {
    return index >= 0 ? changed_.effects.service[static_cast<std::size_t>(index)] : 1.0;
  }

  /// A batch of an operator outside of the workers.
  static Work work_of(const profile::OperatorProfile& op) {
    const double cpu_s = std::min(op.demand_s, ratio(op.cpu_s.value_or(0), op.busy_s) * op.demand_s);
    return {op.demand_s - cpu_s, cpu_s};
  }

  void load_in_sink(const std::vector<WorkSequence>& lanes, const std::string& slowest) {
    for (std::size_t number = 0; number < lanes.front().size(); ++number) {
      for (const WorkSequence& lane : lanes) network_.in_sink.push_back(lane[number]);
    }
    network_.slowest_in_sink = slowest;
    network_.receive.cpu_s = kWithoutWorkers_s;
  }

  void add_workers(std::vector<WorkSequence> lanes, const std::string& slowest) {
    Network::Stage makers;
    makers.workers = loader_.workers;
    makers.window = std::clamp(loader_.per_worker, 1, std::max(1, kLongestWindow / loader_.workers));
    makers.lanes = std::move(lanes);
    makers.name = slowest;
    hand_over(makers);
    network_.ordered = loader_.ordered;
    Network::Stage* last = &makers;
    Network::Stage pins;
    if (loader_.pin >= 0) {
      const profile::OperatorProfile& pin = operator_at(loader_.pin);
      pins.receives = true;
      pins.lanes = {{work_of(pin) * service(loader_.pin)}};
      pins.name = pin.name;
      connect(makers.outputs, pins.inputs);
      last = &pins;
    }
    connect(last->outputs, network_.inputs);
    network_.stages.push_back(std::move(makers));
    if (pins.receives) network_.stages.push_back(std::move(pins));
  }

  /// The window alone bounds what waits between them.
  void connect(std::vector<Network::Edge>& from, std::vector<Network::Edge>& to) {
    const int queue = static_cast<int>(network_.queues.size());
    network_.queues.push_back({kLargestQueue});
    from.push_back({queue, 1});
    to.push_back({queue, 1});
  }

  void hand_over(Network::Stage& makers) {
    network_.receive = kUnmeasuredReceive;
    makers.hands_on_cpu_s = kUnmeasuredPickle_s;
    if (profile_.handoff && profile_.handoff->batches > 0) {
      const profile::Handoff& handoff = *profile_.handoff;
      network_.receive.cpu_s = handoff.receive_cpu_s;
      const double latency_s = std::max(0.0, handoff.receive_s - handoff.receive_cpu_s);
      network_.receive.off_s = std::min(latency_s, kLongestLatency_s);
      network_.receive_locked_s =
          kLockedAgain * std::clamp(latency_s - kLongestLatency_s, 0.0, kLongestLocked_s);
      makers.hands_on_cpu_s = handoff.pickle_cpu_s;
    } else if (profile_.handoff_estimate) {
      add_estimate(*profile_.handoff_estimate, makers, network_.receive);
    }
    network_.receive = network_.receive * service(loader_.handoff);
  }

  /// Work that leaves the step is gone from it; the rest keeps its proportions.
  void add_steps() {
    const profile::SinkProfile& sink = profile_.sink;
    const double kept = std::max(0.0, 1 - ratio(changed_.copy_saved_s, sink.compute_s));
    network_.steps = works_.steps(sink.compute_s, loader_.in_workers);
    for (Work& step : network_.steps) step = step * kept;
  }

  const profile::Profile& profile_;
  const Changed& changed_;
  const Loader& loader_;
  CycleWorks works_;
  Network& network_;
};

}  // namespace

bool network_of_window(const profile::Profile& profile, const Loader& loader,
                       const std::vector<Change>& changes, std::uint64_t seed, Network& network) {
  // Nobody writes more operators; composing batches of them would take seconds.
  constexpr std::size_t kMaxOperators = 256;
  const std::size_t operators = loader.in_workers.size();
  if (operators == 0 || operators > kMaxOperators || work_per_batch_s(profile, loader) <= 0) return false;
  Changed changed{loader, Effects(profile.operators.size()), 0};
  changed.loader.workers = std::min(loader.workers, kMaxWorkers);
  for (const Change& change : changes) {
    if (!apply(profile, change, changed)) return false;
  }
  WindowNetwork(profile, changed, seed, network).build();
  return true;
}

}  // namespace headrace::analysis
