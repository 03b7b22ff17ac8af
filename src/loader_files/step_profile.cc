#include "step_profile.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headrace::loader_files {
namespace {

using profile::GapReason;

/// Collectives that a profile lists by name; the table of steps has all.
constexpr std::size_t kMaxSegments = 256;

/// Time in which at least one of them ran.
double covered_s(const StepRow& step) {
  std::vector<std::pair<double, double>> intervals;
  for (const std::optional<CollectiveTime>& each : step.collectives) {
    if (each) intervals.emplace_back(each->start_s, each->start_s + each->takes_s);
  }
  std::sort(intervals.begin(), intervals.end());
  double covered = 0;
  double until = 0;
  for (const auto& [start, end] : intervals) {
    covered += std::max(0.0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return covered;
}

profile::DeviceStep step_of(const StepRow& row) {
  profile::DeviceStep step;
  step.step = row.number;
  step.iteration_gap_s = row.interval_s;
  step.forward_backward_s = row.forward_backward_s;
  step.tail_s = row.tail_s;
  step.total_s = row.total_s;
  step.communication_s = covered_s(row);
  step.communication_overlap_s = -1;
  return step;
}

/// Means of all steps. The file's own last row is theirs too, in most versions without the first step: where it
/// is there and whole, it counts.
void add_means(const StepTraceFile& file, profile::DeviceSteps& steps) {
  const bool own = file.average && file.average->total_s > 0;
  const auto count = static_cast<double>(file.steps.size());
  for (const StepRow& row : file.steps) {
    if (!own) {
      steps.iteration_gap_s += row.interval_s / count;
      steps.forward_backward_s += row.forward_backward_s.value_or(0) / count;
      steps.tail_s += row.tail_s.value_or(0) / count;
    }
    steps.communication_s += covered_s(row) / count;
    steps.tail_steps += row.tail_s ? 1 : 0;
  }
  if (!own) return;
  steps.iteration_gap_s = file.average->interval_s;
  steps.forward_backward_s = file.average->forward_backward_s.value_or(0);
  steps.tail_s = file.average->tail_s.value_or(0);
}

void add_segments(const StepTraceFile& file, profile::DeviceSteps& steps) {
  for (std::size_t i = 0; i < std::min(kMaxSegments, file.collectives.size()); ++i) {
    profile::StepSegment segment{file.collectives[i], 0, 0};
    double count = 0;
    for (const StepRow& row : file.steps) {
      if (i >= row.collectives.size() || !row.collectives[i]) continue;
      segment.start_s += row.collectives[i]->start_s;
      segment.takes_s += row.collectives[i]->takes_s;
      ++count;
    }
    if (count == 0) continue;
    segment.start_s /= count;
    segment.takes_s /= count;
    steps.segments.push_back(std::move(segment));
  }
}

/// How often the host queue was empty when a batch was taken from it; empty where that was not noted.
std::optional<double> host_empty_share(const RankFiles& files) {
  const BatchRecords* batches = files.batches();
  if (batches == nullptr) return std::nullopt;
  double empty = 0;
  double count = 0;
  for (std::size_t i = 1; i < batches->batches.size(); ++i) {
    if (!batches->batches[i].level) continue;
    empty += *batches->batches[i].level == 0 ? 1 : 0;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return empty / count;
}

/// Only the device's GetNext calls tell; the rest is unknown. See GapPart.
void add_gap(const RankFiles& files, profile::DeviceSteps& steps) {
  if (!files.getnext || steps.iteration_gap_s <= 0) return;
  const auto count = static_cast<double>(files.getnext->calls.size());
  double waiting = 0;
  double taking = 0;
  for (const GetNext& call : files.getnext->calls)
    (call.level == 0 ? waiting : taking) += (call.end_s - call.start_s) / count;
  waiting = std::min(waiting, steps.iteration_gap_s);
  taking = std::min(taking, steps.iteration_gap_s - waiting);
  double left = steps.iteration_gap_s - taking;
  if (const std::optional<double> empty = host_empty_share(files)) {
    steps.gap.push_back({GapReason::processing, waiting * *empty});
    steps.gap.push_back({GapReason::transmission, waiting * (1 - *empty)});
    left -= waiting;
  }
  steps.gap.push_back({GapReason::getnext, taking});
  steps.gap.push_back({GapReason::unknown, std::max(0.0, left)});
  std::erase_if(steps.gap, [](const profile::GapPart& part) { return part.gap_s <= 0; });
  std::stable_sort(steps.gap.begin(), steps.gap.end(),
                   [](const profile::GapPart& a, const profile::GapPart& b) { return a.gap_s > b.gap_s; });
}

}  // namespace

void add_device_steps(const RankFiles& files, profile::Profile& profile) {
  if (!files.steps) return;
  const StepTraceFile& file = *files.steps;
  profile::DeviceProfile device;
  device.idle_s = -1;
  device.waits_from = "trace";
  device.rank = files.rank;
  device.step_notes = file.notes;
  if (!file.steps.empty()) {
    profile::DeviceSteps steps;
    steps.steps = steps.of_steps = file.steps.size();
    steps.communication_overlap_s = -1;
    add_means(file, steps);
    add_segments(file, steps);
    add_gap(files, steps);
    if (files.points) {
      steps.fp_point = files.points->forward_begins;
      steps.bp_point = files.points->backward_ends;
    }
    for (const StepRow& row : file.steps) device.window_s += row.total_s;
    const std::size_t first = file.steps.size() > kSequence ? file.steps.size() - kSequence : 0;
    for (std::size_t i = first; i < file.steps.size(); ++i) steps.sequence.push_back(step_of(file.steps[i]));
    device.steps = std::move(steps);
  }
  profile.device = std::move(device);
}

}  // namespace headrace::loader_files
