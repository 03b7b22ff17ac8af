#include "headrace/profile/loop_totals.h"

#include <algorithm>
#include <cmath>

#include "headrace/profile/figures.h"
#include "headrace/profile/process_identity.h"
#include "profile/snapshot_parts.h"

namespace headrace::profile {
namespace {

constexpr double kRecent_s = 60;

LoopTotals::Histogram histogram_of(const HistogramFigures& figures) {
  return {figures.buckets, figures.count(), figures.sum_ns * kSecond};
}

/// From now back.
void add_recent(const metrics::SinkCell& cell, LoopTotals& totals) {
  totals.recent_wait_s = std::min(totals.stalled_s, kRecent_s);
  const double computes_s = totals.at_s - static_cast<double>(cell.last_event_ns.load()) * kSecond;
  totals.recent_s = std::clamp(std::max(totals.stalled_s, computes_s), 0.0, kRecent_s);
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(0, cell.computes.load()));
  const std::uint64_t kept = std::min<std::uint64_t>(count, metrics::SinkCell::kSequence);
  for (std::uint64_t back = 1; back <= kept; ++back) {
    const auto& step = cell.sequence[(count - back) % metrics::SinkCell::kSequence];
    const double wait_s = step.wait_ns.load() * kSecond;
    const double step_s = wait_s + step.compute_ns.load() * kSecond;
    if (!std::isfinite(step_s) || wait_s < 0 || step_s < wait_s) continue;
    if (totals.recent_s + step_s > kRecent_s) break;
    totals.recent_s += step_s;
    totals.recent_wait_s += wait_s;
  }
}

}  // namespace

LoopTotals loop_totals(const SegmentImage& image, std::uint32_t loader) {
  const SegmentFigures figures = SegmentFigures::of(image, loader);
  const SegmentHeader& header = image.header();
  LoopTotals totals;
  totals.rank = header.rank;
  totals.running = figures.running;
  totals.ended = header.closed.load() != 0;
  totals.died = !totals.ended && !figures.running && header.boot == boot_identity();
  totals.at_s = static_cast<double>(figures.now_ns) * kSecond;
  if (loader >= image.loaders().size()) return totals;
  const SinkFigures& sink = figures.sink;
  totals.steps = sink.steps;
  totals.wait_s = (sink.wait_ns + sink.later_epochs_ns) * kSecond;
  totals.compute_s = sink.compute_ns * kSecond;
  totals.sampled_compute_s = sink.sampled_compute_ns * kSecond;
  totals.sampled_cpu_s = sink.sampled_compute_cpu_ns * kSecond;
  totals.device_steps = static_cast<std::uint64_t>(sink.device_steps);
  totals.device_s = sink.device_ns * kSecond;
  totals.device_host_s = sink.device_host_ns * kSecond;
  const metrics::SinkCell& cell = image.loaders()[loader].sink;
  if (figures.running && cell.waiting.load() != 0) {
    totals.stalled_s = std::max(0.0, static_cast<double>(figures.loop_ns - cell.since_ns.load()) * kSecond);
  }
  add_recent(cell, totals);
  totals.waits = histogram_of(sink.wait);
  totals.step_times = histogram_of(sink.step);
  return totals;
}

}  // namespace headrace::profile
