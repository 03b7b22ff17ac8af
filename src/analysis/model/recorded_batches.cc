#include "recorded_batches.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "../read/numbers.h"
#include "headrace/analysis/read/cores.h"
#include "headrace/analysis/read/service_shape.h"

namespace headrace::analysis {
namespace {

/// So many whole recorded batches keep their order; fewer are composed of items drawn at random.
constexpr std::size_t kWholeBatches = 24;
/// Items drawn per batch; larger batches are scaled so that their spread stays right.
constexpr double kMaxDrawn = 24;
constexpr std::size_t kMaxLanes = 512;

Work work_of(const profile::ServiceSample& sample, const TimeSplit& split) {
  const double cpu_s =
      sample.cpu_s >= 0 ? std::min(sample.cpu_s, sample.wall_s) : split.cpu_share * sample.wall_s;
  return {std::max(0.0, sample.wall_s * (1 - split.waits()) - cpu_s), cpu_s / split.slowdown};
}

}  // namespace

TimeSplit split_of(const profile::OperatorProfile& op, const profile::Host& host) {
  TimeSplit split;
  if (op.cpu_s) split.cpu_share = std::min(1.0, ratio(*op.cpu_s, op.busy_s));
  split.slowdown = recorded_slowdown(host, op.states.busy * split.cpu_share);
  if (op.run_queue_wait_s) {
    split.queue_share = std::clamp(ratio(*op.run_queue_wait_s, op.busy_s), 0.0, 1 - split.cpu_share);
  } else if (host.cpu_share.value_or(0) + host.foreign_cpu_share.value_or(0) >= 0.95) {
    // On a full machine, time off the CPU in work that uses it is mostly waiting for a core.
    split.queue_share = split.cpu_share * (1 - split.cpu_share);
  }
  if (op.lock_wait_s) {
    const double left = std::max(0.0, 1 - split.cpu_share - split.queue_share);
    split.lock_share = std::min(left, ratio(*op.lock_wait_s, op.busy_s));
  }
  return split;
}

double RecordedBatches::WorkerRecord::mean_s() const noexcept {
  double sum = 0;
  for (const Work& work : sequence) sum += work.total_s();
  return ratio(sum, static_cast<double>(sequence.size()));
}

RecordedBatches::RecordedBatches(const profile::OperatorProfile& op, const profile::Host& host, double items,
                                 double factor)
    : per_batch_(std::max(1.0, items)) {
  const TimeSplit split = split_of(op, host);
  read_lanes(op, split);
  // The recorded sequence is a part of the run; its mean is that of the whole.
  const double item_s = ratio(op.demand_s * op.workers, op.items_per_batch > 0 ? op.items_per_batch : 1);
  // Each worker counts by the items it did, not by how many of them were kept.
  double sampled = 0;
  double sampled_s = 0;
  for (const WorkerRecord& lane : lanes_) {
    const double items_done = std::max(lane.items, static_cast<double>(lane.sequence.size()));
    sampled += items_done;
    sampled_s += lane.mean_s() * items_done;
  }
  const double cpu_s = item_s * split.cpu_share / split.slowdown;
  const double off_s = std::max(0.0, item_s * (1 - split.waits() - split.cpu_share));
  const double without_waits_s = off_s + cpu_s;
  const double to_whole_run =
      sampled_s > 0 ? std::clamp(ratio(without_waits_s * sampled, sampled_s), 0.25, 4.0) : 1;
  // Less than one item: the average of the draws in which there is one and those in which there is none.
  factor *= items < 1 ? items : 1;
  scale_ = factor * to_whole_run;
  mean_ = Work{off_s, cpu_s} * factor;
  double whole = 0;
  for (const WorkerRecord& lane : lanes_)
    whole += std::floor(static_cast<double>(lane.sequence.size()) / per_batch_);
  whole_ = whole >= kWholeBatches;
}

/// Lanes by the loader's own number of the worker; by entry if it has none.
void RecordedBatches::read_lanes(const profile::OperatorProfile& op, const TimeSplit& split) {
  const bool numbered =
      std::any_of(op.per_worker.begin(), op.per_worker.end(),
                  [](const profile::WorkerProfile& worker) { return worker.worker_id.has_value(); });
  std::map<int, WorkerRecord> lanes;
  int entry = 0;
  for (const profile::WorkerProfile& worker : op.per_worker) {
    if (worker.sequence.empty() || (numbered && !worker.worker_id)) continue;
    if (lanes.size() >= kMaxLanes) break;
    WorkerRecord& lane = lanes[numbered ? static_cast<int>(*worker.worker_id) : entry++];
    for (const profile::ServiceSample& sample : worker.sequence) {
      lane.sequence.push_back(work_of(sample, split));
    }
    // A short sequence rarely holds the rarest items; the list of the slowest does.
    if (worker.items > 2 * worker.sequence.size()) {
      for (const profile::ServiceSample& sample : worker.slowest) {
        lane.slowest.push_back(work_of(sample, split));
      }
    }
    lane.items += static_cast<double>(worker.items);
  }
  for (auto& [number, lane] : lanes) lanes_.push_back(std::move(lane));
}

/// Workers that are slower than the median of them take what it takes.
void RecordedBatches::make_alike() {
  std::vector<double> means;
  for (const WorkerRecord& lane : lanes_) means.push_back(lane.mean_s());
  if (means.empty()) return;
  std::vector<double> sorted = means;
  std::sort(sorted.begin(), sorted.end());
  const double usual_s = sorted[(sorted.size() - 1) / 2];
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (means[i] <= usual_s) continue;
    for (std::vector<Work>* works : {&lanes_[i].sequence, &lanes_[i].slowest}) {
      for (Work& work : *works) work = work * ratio(usual_s, means[i]);
    }
  }
}

void RecordedBatches::make_usual() {
  std::vector<double> all_s;
  for (const WorkerRecord& lane : lanes_) {
    for (const Work& work : lane.sequence) all_s.push_back(work.total_s());
  }
  if (all_s.empty()) return;
  const auto middle = all_s.begin() + static_cast<std::ptrdiff_t>(all_s.size() / 2);
  std::nth_element(all_s.begin(), middle, all_s.end());
  for (WorkerRecord& lane : lanes_) {
    for (std::vector<Work>* works : {&lane.sequence, &lane.slowest}) {
      for (Work& work : *works) {
        if (work.total_s() > kTailMedians * *middle) work = work * ratio(*middle, work.total_s());
      }
    }
  }
}

void RecordedBatches::use_mean() {
  lanes_.clear();
  whole_ = true;
}

std::size_t RecordedBatches::items() const noexcept {
  return static_cast<std::size_t>(std::llround(std::min(per_batch_, 1e9)));
}

std::size_t RecordedBatches::length() const noexcept {
  std::size_t most = 0;
  for (const WorkerRecord& lane : lanes_) most = std::max(most, lane.sequence.size() / items());
  return most;
}

Work RecordedBatches::batch(std::size_t lane, std::size_t number, Random& random) const {
  if (lanes_.empty()) return mean_ * per_batch_;
  const WorkerRecord& from = lanes_[lane % lanes_.size()];
  const bool consecutive = whole_ && from.sequence.size() >= items();
  return (consecutive ? recorded(from, number) : composed(from, random)) * scale_;
}

Work RecordedBatches::recorded(const WorkerRecord& lane, std::size_t number) const {
  const std::size_t begin = number % (lane.sequence.size() / items()) * items();
  Work sum;
  for (std::size_t i = begin; i < begin + items(); ++i) sum += lane.sequence[i];
  return sum * (per_batch_ / static_cast<double>(items()));
}

Work RecordedBatches::composed(const WorkerRecord& lane, Random& random) const {
  const int drawn = static_cast<int>(std::min(per_batch_, kMaxDrawn));
  Work sum;
  for (int i = 0; i < drawn; ++i) sum += one(lane, random);
  const double more = per_batch_ / drawn;
  if (more <= 1.001) return sum;
  // As many items more, with the spread of a sum of all of them.
  const double usual_s = lane.mean_s() * drawn;
  const double apart = ratio(sum.total_s(), usual_s) - 1;
  return sum * ratio(usual_s * more * std::max(0.05, 1 + apart / std::sqrt(more)), sum.total_s());
}

const Work& RecordedBatches::one(const WorkerRecord& lane, Random& random) {
  const double rarely = ratio(static_cast<double>(lane.slowest.size()), lane.items);
  if (!lane.slowest.empty() && std::uniform_real_distribution<>(0, 1)(random) < rarely) {
    return lane.slowest[random() % lane.slowest.size()];
  }
  return lane.sequence[random() % lane.sequence.size()];
}

std::vector<Work> training_steps(const profile::SinkProfile& sink, double own_s, double queue_share,
                                 const profile::Host& host) {
  const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), own_s));
  if (sink.compute_core_wait_s)
    queue_share = std::min(1 - cpu_share, ratio(*sink.compute_core_wait_s, own_s));
  const double alone = cpu_share / recorded_slowdown(host, cpu_share * ratio(sink.compute_s, sink.step_s));
  const Work part{std::max(0.0, 1 - cpu_share - queue_share), alone};
  double sum = 0;
  for (const profile::StepSample& step : sink.sequence) sum += step.compute_s;
  if (sum <= 0) return {part * own_s};
  // The recorded steps are a part of the run; their mean is that of the whole.
  const double scale = own_s * static_cast<double>(sink.sequence.size()) / sum;
  std::vector<Work> steps;
  steps.reserve(sink.sequence.size());
  for (const profile::StepSample& step : sink.sequence) steps.push_back(part * (step.compute_s * scale));
  return steps;
}

}  // namespace headrace::analysis
