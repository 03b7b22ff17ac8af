#include "headrace/analysis/what_if/loader_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "../diagnosis/numbers.h"

namespace headrace::analysis {
namespace {

using Random = std::mt19937_64;

/// More workers than this change nothing that could be simulated.
constexpr int kMostWorkers = 512;
/// Nor does a longer window.
constexpr int kLongestWindow = 4096;
/// Handing a batch over and receiving it, where that was never measured (no workers yet): one tensor, by file
/// descriptor.
constexpr Work kUnmeasuredReceive{3e-4, 7e-4};
constexpr double kUnmeasuredPickle_s = 3e-4;
constexpr double kLongestLatency_s = 1.2e-3;
/// A worker whose interpreter lock is taken answers late, and only while it works: of what was measured under
/// load, not all is left where workers rest (all of it predicted twice the step that was measured, none of it
/// 14 % too little).
constexpr double kLongestLocked_s = 15e-3;
constexpr double kLockedAgain = 0.5;
/// What the loader itself does per batch without workers.
constexpr double kWithoutWorkers_s = 3e-5;
/// So many whole recorded batches keep their order; fewer are composed of items drawn at random.
constexpr std::size_t kWholeBatches = 24;
constexpr std::size_t kComposedBatches = 512;
/// Items drawn per batch; larger batches are scaled so that their spread stays right.
constexpr int kMostDrawn = 24;

/// The items of one operator in one worker, oldest first.
struct Recorded {
  std::vector<Work> sequence;
  std::vector<Work> slowest;  ///< of all items, beyond those in the sequence
  double items = 0;
};

/// How an operator's wall time is made up.
struct Split {
  double cpu_share = 0;
  double queue_share = 0;  ///< waiting for a core
};

Split split_of(const profile::OperatorProfile& op, const profile::Host& host) {
  Split split;
  if (op.cpu_s) split.cpu_share = std::min(1.0, ratio(*op.cpu_s, op.busy_s));
  if (op.run_queue_wait_s) {
    split.queue_share = std::clamp(ratio(*op.run_queue_wait_s, op.busy_s), 0.0, 1 - split.cpu_share);
  } else if (host.cpu_share.value_or(0) + host.foreign_cpu_share.value_or(0) >= 0.95) {
    // On a full machine, time off the CPU in work that uses it is mostly waiting for a core.
    split.queue_share = split.cpu_share * (1 - split.cpu_share);
  }
  return split;
}

Work work_of(const profile::ServiceSample& sample, const Split& split) {
  const double cpu_s =
      sample.cpu_s >= 0 ? std::min(sample.cpu_s, sample.wall_s) : split.cpu_share * sample.wall_s;
  return {std::max(0.0, sample.wall_s * (1 - split.queue_share) - cpu_s), cpu_s};
}

/// Lanes by the loader's own number of the worker; by entry where it has none.
std::vector<Recorded> recorded_lanes(const profile::OperatorProfile& op, const profile::Host& host) {
  const Split split = split_of(op, host);
  const bool numbered =
      std::any_of(op.per_worker.begin(), op.per_worker.end(),
                  [](const profile::WorkerProfile& worker) { return worker.worker_id >= 0; });
  std::map<int, Recorded> lanes;
  int entry = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    if (worker.sequence.empty() || (numbered && worker.worker_id < 0)) continue;
    Recorded& lane = lanes[numbered ? worker.worker_id : entry++];
    for (const profile::ServiceSample& sample : worker.sequence)
      lane.sequence.push_back(work_of(sample, split));
    // A short sequence rarely holds the rarest items; the list of the slowest does.
    if (worker.items > 2 * worker.sequence.size()) {
      for (const profile::ServiceSample& sample : worker.slowest)
        lane.slowest.push_back(work_of(sample, split));
    }
    lane.items += static_cast<double>(worker.items);
  }
  std::vector<Recorded> in_order;
  for (auto& [number, lane] : lanes) in_order.push_back(std::move(lane));
  return in_order;
}

double mean_s(const Recorded& lane) {
  double sum = 0;
  for (const Work& work : lane.sequence) sum += work.total_s();
  return ratio(sum, static_cast<double>(lane.sequence.size()));
}

/// Workers that are slower than the median of them take what it takes.
void make_alike(std::vector<Recorded>& lanes) {
  std::vector<double> means;
  for (const Recorded& lane : lanes) means.push_back(mean_s(lane));
  if (means.empty()) return;
  std::vector<double> sorted = means;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2),
                   sorted.end());
  const double usual = sorted[(sorted.size() - 1) / 2];
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (means[i] <= usual) continue;
    for (std::vector<Work>* works : {&lanes[i].sequence, &lanes[i].slowest}) {
      for (Work& work : *works) work = work * ratio(usual, means[i]);
    }
  }
}

/// One operator's share in every batch.
class OperatorBatches {
 public:
  OperatorBatches(const profile::OperatorProfile& op, const profile::Host& host, double factor, bool alike)
      : lanes_(recorded_lanes(op, host)), per_batch_(std::max(1.0, op.items_per_batch)) {
    // The recorded sequence is a part of the run; its mean is that of the whole.
    const double run_s = op.demand_s * op.workers / per_batch_;
    double sampled = 0;
    double sampled_s = 0;
    for (const Recorded& lane : lanes_) {
      sampled += static_cast<double>(lane.sequence.size());
      sampled_s += mean_s(lane) * static_cast<double>(lane.sequence.size());
    }
    const Split split = split_of(op, host);
    const double busy_s = run_s * (1 - split.queue_share);
    scale_ = factor * (sampled_s > 0 ? std::clamp(busy_s / (sampled_s / sampled), 0.25, 4.0) : 1);
    mean_ =
        Work{busy_s * (1 - ratio(split.cpu_share, 1 - split.queue_share)), run_s * split.cpu_share} * factor;
    mean_.off_s = std::max(0.0, mean_.off_s);
    if (alike) make_alike(lanes_);
    std::size_t whole = 0;
    for (const Recorded& lane : lanes_)
      whole += static_cast<std::size_t>(static_cast<double>(lane.sequence.size()) / per_batch_);
    whole_ = whole >= kWholeBatches;
  }

  std::size_t lanes() const noexcept { return lanes_.size(); }
  bool whole() const noexcept { return whole_; }
  /// Whole batches of the longest lane.
  std::size_t length() const noexcept {
    std::size_t most = 0;
    for (const Recorded& lane : lanes_) most = std::max(most, lane.sequence.size() / items());
    return most;
  }

  Work batch(std::size_t lane, std::size_t number, Random& random) const {
    if (lanes_.empty()) return mean_ * per_batch_;
    const Recorded& from = lanes_[lane % lanes_.size()];
    return (whole_ && from.sequence.size() >= items() ? recorded(from, number) : composed(from, random)) *
           scale_;
  }

 private:
  std::size_t items() const noexcept { return static_cast<std::size_t>(std::lround(per_batch_)); }

  Work recorded(const Recorded& lane, std::size_t number) const {
    const std::size_t begin = number % (lane.sequence.size() / items()) * items();
    Work sum;
    for (std::size_t i = begin; i < begin + items(); ++i) sum += lane.sequence[i];
    return sum * (per_batch_ / static_cast<double>(items()));
  }

  Work composed(const Recorded& lane, Random& random) const {
    const int drawn = std::min<int>(static_cast<int>(items()), kMostDrawn);
    Work sum;
    for (int i = 0; i < drawn; ++i) sum += one(lane, random);
    const double more = per_batch_ / drawn;
    if (more <= 1.001) return sum;
    // As many items more, with the spread of a sum of all of them.
    const double usual_s = mean_s(lane) * drawn;
    const double apart = ratio(sum.total_s(), usual_s) - 1;
    return sum * ratio(usual_s * more * std::max(0.05, 1 + apart / std::sqrt(more)), sum.total_s());
  }

  static const Work& one(const Recorded& lane, Random& random) {
    const double rarely = ratio(static_cast<double>(lane.slowest.size()), lane.items);
    if (!lane.slowest.empty() && std::uniform_real_distribution<>(0, 1)(random) < rarely) {
      return lane.slowest[random() % lane.slowest.size()];
    }
    return lane.sequence[random() % lane.sequence.size()];
  }

  std::vector<Recorded> lanes_;
  double per_batch_;
  double scale_ = 1;
  Work mean_;
  bool whole_ = false;
};

/// What the changes come down to.
struct Settings {
  std::vector<double> service;  ///< per operator
  std::vector<bool> alike;
  double copy_saved_s = 0;
};

bool apply(const profile::Profile& profile, const Loader& loader, const Change& change, LoaderModel& model,
           Settings& settings) {
  const bool of_workers =
      std::find(loader.in_workers.begin(), loader.in_workers.end(), change.index) != loader.in_workers.end();
  switch (change.kind) {
    case Change::Kind::kWorkers:
      if (!of_workers) return false;
      model.num_workers = std::clamp(change.to, 0, kMostWorkers);
      return true;
    case Change::Kind::kPrefetchFactor:
      if (model.num_workers == 0) return false;
      model.prefetch_factor = std::max(change.to, 1);
      return true;
    case Change::Kind::kInOrder:
      if (model.num_workers == 0) return false;
      model.in_order = change.to != 0;
      return true;
    case Change::Kind::kService:
    case Change::Kind::kAlike: {
      if (change.index < 0 || static_cast<std::size_t>(change.index) >= profile.operators.size())
        return false;
      const std::size_t at = static_cast<std::size_t>(change.index);
      if (change.kind == Change::Kind::kAlike && of_workers) {
        settings.alike[at] = true;
        return true;
      }
      settings.service[at] *= change.factor;
      if (change.index == loader.to_device) {
        settings.copy_saved_s = profile.operators[at].demand_s * (1 - change.factor);
      }
      return true;
    }
    default:
      return false;
  }
}

void add_steps(const profile::Profile& profile, double waits_per_cpu, double saved_s, LoaderModel& model) {
  const profile::SinkProfile& sink = profile.sink;
  const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), sink.compute_s));
  const double queue_share = std::min(1 - cpu_share, cpu_share * waits_per_cpu);
  const double kept = std::max(0.0, 1 - ratio(saved_s, sink.compute_s));
  double sum = 0;
  for (const profile::StepSample& step : sink.sequence) sum += step.compute_s;
  const double scale = sum > 0 ? ratio(sink.compute_s * static_cast<double>(sink.sequence.size()), sum) : 1;
  for (const profile::StepSample& step : sink.sequence) {
    model.steps.push_back(Work{1 - cpu_share - queue_share, cpu_share} * (step.compute_s * scale * kept));
  }
  if (sum <= 0) model.steps.assign(1, Work{1 - cpu_share - queue_share, cpu_share} * (sink.compute_s * kept));
}

void add_handoff(const profile::Profile& profile, const Loader& loader, const Settings& settings,
                 LoaderModel& model) {
  const auto service = [&](int index) {
    return index >= 0 ? settings.service[static_cast<std::size_t>(index)] : 1.0;
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
  model.pin_memory = name(loader.pin);
  model.sampler = name(loader.sampler);
}

}  // namespace

bool make_loader_model(const profile::Profile& profile, const Loader& loader,
                       const std::vector<Change>& changes, std::uint64_t seed, LoaderModel& model) {
  model = LoaderModel{};
  model.num_workers = std::min(loader.num_workers, kMostWorkers);
  model.prefetch_factor = loader.prefetch_factor;
  model.in_order = loader.in_order;
  const double foreign = profile.host.foreign_contention_share.value_or(0);
  model.cores = std::max(0.25, std::max(1, profile.host.cores) * (1 - foreign));
  Settings settings;
  settings.service.assign(profile.operators.size(), 1);
  settings.alike.assign(profile.operators.size(), false);
  for (const Change& change : changes) {
    if (!apply(profile, loader, change, model, settings)) return false;
  }
  model.prefetch_factor =
      std::clamp(model.prefetch_factor, 1, std::max(1, kLongestWindow / std::max(1, model.num_workers)));

  Random random(seed);
  std::vector<OperatorBatches> operators;
  std::size_t lanes = 1;
  std::size_t length = 0;
  double largest_s = -1;
  double cpu_s = 0;
  double queued_s = 0;
  for (int i : loader.in_workers) {
    const std::size_t at = static_cast<std::size_t>(i);
    const profile::OperatorProfile& op = profile.operators[at];
    operators.emplace_back(op, profile.host, settings.service[at], settings.alike[at]);
    lanes = std::max(lanes, operators.back().lanes());
    length = std::max(length, operators.back().whole() ? operators.back().length() : 0);
    const double takes_s = op.demand_s * settings.service[at];
    if (takes_s > largest_s) {
      largest_s = takes_s;
      model.slowest = op.name;
    }
    const Split split = split_of(op, profile.host);
    cpu_s += split.cpu_share * op.busy_s;
    queued_s += split.queue_share * op.busy_s;
  }
  const bool composes = std::any_of(operators.begin(), operators.end(),
                                    [](const OperatorBatches& each) { return !each.whole(); });
  if (composes) length = std::max(length, std::max<std::size_t>(8, kComposedBatches / lanes));
  length = std::clamp<std::size_t>(length, 1, 512);
  model.lanes.assign(lanes, {});
  for (std::size_t number = 0; number < length; ++number) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      Work batch;
      for (const OperatorBatches& each : operators) batch += each.batch(lane, number, random);
      model.lanes[lane].push_back(batch);
    }
  }
  add_steps(profile, ratio(queued_s, cpu_s), settings.copy_saved_s, model);
  add_handoff(profile, loader, settings, model);
  if (model.num_workers == 0) {
    model.pins = false;
    model.receive = {0, kWithoutWorkers_s};
  }
  return true;
}

}  // namespace headrace::analysis
