#include "analysis/traced_input/loop_calls.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace headrace::analysis {
namespace {

constexpr std::size_t kLongest = 8;
/// Steps that a profile lists.
constexpr std::size_t kSequence = 512;
/// Levels that have a bin of their own.
constexpr std::int64_t kMaxBins = 64;

profile::Latency latency_of(std::vector<double> values) {
  profile::Latency latency;
  if (values.empty()) return latency;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const auto quantile = [&](double share) {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    return values[std::min(at, values.size() - 1)];
  };
  latency.count = values.size();
  latency.mean_s = sum / static_cast<double>(values.size());
  latency.p50_s = quantile(0.5);
  latency.p90_s = quantile(0.9);
  latency.p99_s = quantile(0.99);
  latency.max_s = values.back();
  return latency;
}

}  // namespace

void add_calls(const std::vector<LoopCall>& calls, profile::Profile& profile) {
  if (calls.empty()) return;
  profile::SinkProfile& sink = profile.sink;
  sink.steps = calls.size();
  profile.epochs = 1;
  profile.startup.first_batch_s = calls.front().wait_s;
  if (calls.size() < 2) return;
  const double begin_s = calls.front().end_s();
  profile.elapsed_s = std::max(0.0, calls.back().end_s() - begin_s);
  const auto steps = static_cast<double>(calls.size() - 1);
  std::vector<double> waits;
  double waited = 0;
  double starved = 0;
  double ready_wait = 0;
  double ready = 0;
  std::vector<profile::Stall> stalls;
  for (std::size_t i = 1; i < calls.size(); ++i) {
    const LoopCall& call = calls[i];
    waits.push_back(call.wait_s);
    waited += call.wait_s;
    (call.ready ? ready_wait : starved) += call.wait_s;
    ready += call.ready ? 1 : 0;
    stalls.push_back({std::max(0.0, call.start_s - begin_s), call.wait_s, i + 1});
  }
  sink.getnext_wait = latency_of(std::move(waits));
  sink.step_s = profile.elapsed_s / steps;
  sink.compute_s = std::max(0.0, sink.step_s - waited / steps);
  if (profile.elapsed_s > 0) {
    sink.wait_share = std::min(1.0, waited / profile.elapsed_s);
    sink.starved_share = std::min(sink.wait_share, starved / profile.elapsed_s);
  }
  sink.ready_share = ready / steps;
  if (ready > 0) sink.handoff_floor_s = ready_wait / ready;
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const profile::Stall& a, const profile::Stall& b) { return a.wait_s > b.wait_s; });
  stalls.resize(std::min(stalls.size(), kLongest));
  std::erase_if(stalls, [](const profile::Stall& stall) { return stall.wait_s <= 0; });
  sink.longest_waits = std::move(stalls);
  for (std::size_t i = calls.size() > kSequence + 1 ? calls.size() - kSequence - 1 : 1; i + 1 < calls.size();
       ++i) {
    profile::StepSample sample;
    sample.wait_s = calls[i].wait_s;
    sample.compute_s = std::max(0.0, calls[i + 1].start_s - calls[i].end_s());
    sink.sequence.push_back(sample);
  }
}

void add_levels(const std::vector<std::int64_t>& levels, profile::QueueProfile& queue) {
  queue.samples = levels.size();
  if (levels.empty()) return;
  const std::int64_t top =
      std::max<std::int64_t>(queue.capacity, *std::max_element(levels.begin(), levels.end()));
  queue.levels_per_bin = static_cast<int>(top / kMaxBins + 1);
  queue.occupancy.assign(static_cast<std::size_t>(top / queue.levels_per_bin + 1), 0);
  const auto count = static_cast<double>(levels.size());
  for (const std::int64_t level : levels) {
    queue.occupancy[static_cast<std::size_t>(level / queue.levels_per_bin)] += 1 / count;
    queue.mean += static_cast<double>(level) / count;
    queue.empty_share += level == 0 ? 1 / count : 0;
    queue.full_share += queue.capacity > 0 && level >= queue.capacity ? 1 / count : 0;
  }
}

}  // namespace headrace::analysis
