#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "analysis/device/callers.h"
#include "headrace/analysis/device/annotations.h"

namespace headrace::analysis::device {
namespace {

using trace::kNoRow;
using trace::Row;

std::int64_t middle_ns(const Work& work) noexcept {
  return work.start_ns + (work.end_ns - work.start_ns) / 2;
}

/// A run of places, some of which are taken: the next free one in nearly no time (union-find).
class FreePlaces {
 public:
  explicit FreePlaces(std::size_t count) : next_(count + 1) {
    std::iota(next_.begin(), next_.end(), std::size_t{0});
  }
  /// The first free place at `place` or behind it; the number of places where none is.
  std::size_t from(std::size_t place) noexcept {
    while (next_[place] != place) place = next_[place] = next_[next_[place]];
    return place;
  }
  void take(std::size_t place) noexcept { next_[place] = place + 1; }

 private:
  std::vector<std::size_t> next_;
};

/// The shortest range takes its work first, longer ones what is left.
std::vector<Row> by_device_ranges(const trace::Trace& trace, std::span<const Work> work) {
  const trace::Columns& columns = trace.columns();
  const auto place_of = [&](const Work& each) { return std::pair(columns.lane[each.row], middle_ns(each)); };
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return place_of(work[a]) < place_of(work[b]); });

  std::vector<Row> ranges;
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == trace::EventKind::device_annotation) ranges.push_back(row);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [&](Row a, Row b) { return columns.duration_ns[a] < columns.duration_ns[b]; });

  std::vector<Row> result(work.size(), kNoRow);
  FreePlaces free(work.size());
  for (const Row range : ranges) {
    const auto first_at = [&](std::int64_t ns) {
      const auto at = std::lower_bound(
          order.begin(), order.end(), std::pair(columns.lane[range], ns),
          [&](std::size_t each, const auto& wanted) { return place_of(work[each]) < wanted; });
      return static_cast<std::size_t>(at - order.begin());
    };
    const std::size_t end = first_at(columns.end_ns(range));
    for (std::size_t at = free.from(first_at(columns.start_ns[range])); at < end; at = free.from(at)) {
      result[order[at]] = range;
      free.take(at);
    }
  }
  return result;
}

std::vector<Row> by_host_ranges(const trace::Trace& trace, std::span<const Work> work) {
  Callers callers(trace, [&](Row row) { return trace.kinds[row] == trace::EventKind::annotation; });
  std::vector<Row> result;
  result.reserve(work.size());
  for (const Work& each : work) {
    const Row launch = trace.correlation.launch_of(each.row);
    result.push_back(launch == kNoRow ? kNoRow : callers.innermost(launch));
  }
  return result;
}

}  // namespace

std::vector<Row> annotation_of(const trace::Trace& trace, std::span<const Work> work, bool on_device) {
  return on_device ? by_device_ranges(trace, work) : by_host_ranges(trace, work);
}

}  // namespace headrace::analysis::device
