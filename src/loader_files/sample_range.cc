#include "sample_range.h"

#include <algorithm>

namespace headrace::loader_files {
namespace {

/// A source that ran dry had its queue at least so full before, and less full afterwards.
constexpr double kFull = 0.5;
/// What is in the queues then may keep the pipeline going for half of the run at most.
constexpr std::size_t kMaxOfRun = 2;

/// The CPU file is written at the same ticks; newer ones have one stamp more, taken before the first.
std::vector<double> stamps_of(const RankFiles& files, std::size_t samples) {
  if (!files.cpu || samples == 0) return {};
  const std::vector<double>& stamps = files.cpu->time_stamps_ms;
  if (stamps.size() == samples) return stamps;
  if (stamps.size() == samples + 1) return {stamps.begin() + 1, stamps.end()};
  return {};
}

/// Samples in (from, to]; all where the moments are not known.
void keep_between_batches(const RankFiles& files, SampleRange& range) {
  const BatchRecords* batches = files.batches();
  if (batches == nullptr || !batches->has_times || range.stamps_ms.empty()) return;
  const double from = batches->batches.front().end_ms.value_or(0);
  const double to = batches->batches.back().end_ms.value_or(0);
  while (range.begin < range.end && range.stamps_ms[range.begin] <= from) ++range.begin;
  while (range.end > range.begin && range.stamps_ms[range.end - 1] > to) --range.end;
}

/// Without moments: what lies before the first row in any queue is start-up.
void drop_leading_empty(const PipelineFile& pipeline, SampleRange& range) {
  const auto all_empty = [&](std::size_t i) {
    return std::all_of(pipeline.operators.begin(), pipeline.operators.end(), [i](const PipelineOperator& op) {
      return !op.queue || i >= op.queue->levels.size() || op.queue->levels[i] == 0;
    });
  };
  std::size_t begin = range.begin;
  while (begin < range.end && all_empty(begin)) ++begin;
  if (begin < range.end) range.begin = begin;
}

/// Behind the last sample at which the source still made rows: from there on its queue only falls.
std::size_t end_of_source(const QueueSamples& queue, const SampleRange& range) {
  std::size_t at = std::min(range.end, queue.levels.size());
  if (queue.capacity <= 0 || at <= range.begin + 1) return range.end;
  const std::int32_t last = queue.levels[at - 1];
  while (at > range.begin + 1 && queue.levels[at - 2] >= queue.levels[at - 1]) --at;
  const std::int32_t highest = queue.levels[at - 1];
  const double high = kFull * static_cast<double>(queue.capacity);
  if (highest < high || last >= high) return range.end;
  while (at < range.end && queue.levels[at] == highest) ++at;
  return at;
}

/// Whether the loop hardly waited: then the queues may have kept it going for long after the source was done.
bool hardly_waits(const BatchRecords* batches) {
  constexpr double kHardly = 0.05;
  if (batches == nullptr || !batches->has_times) return false;
  double waited = 0;
  for (std::size_t i = 1; i < batches->batches.size(); ++i) waited += batches->batches[i].wait_ms.value_or(0);
  const double lasted =
      batches->batches.back().end_ms.value_or(0) - batches->batches.front().end_ms.value_or(0);
  return waited < kHardly * lasted;
}

void drop_dry_end(const PipelineFile& pipeline, bool however_long, SampleRange& range) {
  std::size_t end = range.end;
  for (const PipelineOperator& op : pipeline.operators) {
    if (op.children.empty() && op.queue) end = std::min(end, end_of_source(*op.queue, range));
  }
  if (however_long || range.end - end <= range.size() / kMaxOfRun) range.end = end;
}

}  // namespace

SampleRange steady_samples(const RankFiles& files) {
  SampleRange range;
  if (!files.pipeline) return range;
  range.end = files.pipeline->samples();
  range.stamps_ms = stamps_of(files, range.end);
  keep_between_batches(files, range);
  if (range.stamps_ms.empty()) drop_leading_empty(*files.pipeline, range);
  drop_dry_end(*files.pipeline, hardly_waits(files.batches()), range);
  return range;
}

}  // namespace headrace::loader_files
