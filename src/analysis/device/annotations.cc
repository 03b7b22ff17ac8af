#include "headrace/analysis/device/annotations.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/device/callers.h"
#include "analysis/device/named_calls.h"
#include "headrace/analysis/device/figures.h"

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

namespace {

using trace::Names;

/// Device time of ranges of one name.
struct DeviceSide {
  std::int64_t works = 0;
  std::int64_t span_ns = 0;
};

/// By name of the ranges, of the host's that are wanted.
std::map<std::string_view, DeviceSide> device_sides(const trace::Trace& trace, const Selection& selection) {
  const trace::Columns& columns = trace.columns();
  struct OfRange {
    std::int64_t works = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
  };
  const auto add = [](std::unordered_map<Row, OfRange>& ranges, Row row, const OfRange& more) {
    const auto [at, is_new] = ranges.try_emplace(row, more);
    if (is_new) return;
    at->second.works += more.works;
    at->second.first_ns = std::min(at->second.first_ns, more.first_ns);
    at->second.last_ns = std::max(at->second.last_ns, more.last_ns);
  };
  // From the innermost calls outwards, so that each is looked at once, however deep they lie.
  const std::vector<std::uint32_t> depths = trace.calls.depths();
  std::map<std::uint32_t, std::unordered_map<Row, OfRange>> levels;
  for (const Row work : trace.device_rows) {
    const Row launch = trace.correlation.launch_of(work);
    if (launch != trace::kNoRow)
      add(levels[depths[launch]], launch, {1, columns.start_ns[work], columns.end_ns(work)});
  }
  std::map<std::string_view, DeviceSide> sides;
  while (!levels.empty()) {
    const auto deepest = std::prev(levels.end());
    const std::unordered_map<Row, OfRange> ranges = std::move(deepest->second);
    levels.erase(deepest);
    for (const auto& [row, range] : ranges) {
      if (trace.kinds[row] == trace::EventKind::annotation && selection.has(row)) {
        DeviceSide& side = sides[columns.name_of(row)];
        side.works += range.works;
        side.span_ns += range.last_ns - range.first_ns;
      }
      const Row around = trace.calls.parent_of(row);
      if (around != trace::kNoRow && columns.lane[around] == columns.lane[row])
        add(levels[depths[around]], around, range);
    }
  }
  return sides;
}

void add_ranges(const trace::Trace& trace, const AnnotationsOptions& options,
                Rows<AnnotationsColumns>& rows) {
  const trace::Columns& columns = trace.columns();
  const Selection selection(trace, options.scope);
  const auto wanted = options.on_device ? trace::EventKind::device_annotation : trace::EventKind::annotation;
  CallsByName by_name(columns.names);
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] == wanted && selection.has(row))
      by_name.add(columns.name[row], KernelKind::other, columns.duration_ns[row]);
  }
  const std::vector<NamedCalls> ranges = by_name.take();
  const std::int64_t whole_ns = total_ns(ranges);
  std::map<std::string_view, DeviceSide> sides;
  if (!options.on_device) sides = device_sides(trace, selection);
  for (const NamedCalls& each :
       folded(ranges, {options.most_names, options.time_share, options.always_shown})) {
    const auto known = sides.find(each.name);
    DeviceSide side;
    if (known != sides.end()) {
      side = known->second;
      sides.erase(known);
    } else if (each.name == kOthers) {  // stands behind those that are named
      for (const auto& [name, left] : sides) {
        side.works += left.works;
        side.span_ns += left.span_ns;
      }
    }
    rows.add(trace.rank, each.name, call_figures(each.calls, whole_ns), side.works, seconds(side.span_ns));
  }
  if (ranges.empty())
    rows.note(trace.rank,
              options.on_device ? " has no annotations on the device" : " has no annotations on the host");
}

/// Kernels of one name in ranges of one name.
struct InRange {
  Names::Id annotation = 0;
  Names::Id name = 0;
  KernelKind kind = KernelKind::other;
  std::int64_t duration_ns = 0;

  auto key() const noexcept { return std::tuple(annotation, name, kind); }
};

struct KernelGroup {
  InRange first;
  CallStatistics calls;
};

void add_kernels(const trace::Trace& trace, const AnnotationsOptions& options,
                 Rows<AnnotationKernelsColumns>& rows) {
  const trace::Columns& columns = trace.columns();
  const DeviceWork all = device_work(trace, options.scope);
  const std::vector<Row> ranges = annotation_of(trace, all.work, options.on_device);
  std::vector<InRange> work;
  std::int64_t whole_ns = 0;
  for (std::size_t i = 0; i < all.work.size(); ++i) {
    const Work& each = all.work[i];
    const Names::Id annotation = ranges[i] == trace::kNoRow ? Names::Id{0} : columns.name[ranges[i]];
    work.push_back({annotation, columns.name[each.row], each.kind, each.end_ns - each.start_ns});
    whole_ns += work.back().duration_ns;
  }
  std::sort(work.begin(), work.end(), [](const InRange& a, const InRange& b) { return a.key() < b.key(); });
  std::vector<KernelGroup> groups;
  for (const InRange& each : work) {
    if (groups.empty() || groups.back().first.key() != each.key()) groups.push_back({each, {}});
    groups.back().calls.add(each.duration_ns);
  }
  const Names& names = columns.names;
  std::sort(groups.begin(), groups.end(), [&](const KernelGroup& a, const KernelGroup& b) {
    return std::tuple(names[a.first.annotation], -a.calls.total_ns(), names[a.first.name]) <
           std::tuple(names[b.first.annotation], -b.calls.total_ns(), names[b.first.name]);
  });
  for (const KernelGroup& group : groups)
    rows.add(trace.rank, names[group.first.annotation], names[group.first.name], to_string(group.first.kind),
             call_figures(group.calls, whole_ns));
  rows.take_notes(all.notes);
}

}  // namespace

Annotations annotations(std::span<const trace::Trace> traces, const AnnotationsOptions& options) {
  Rows<AnnotationsColumns> ranges;
  ranges.show<"works">(!options.on_device);
  ranges.show<"device_span_s">(!options.on_device);
  Rows<AnnotationKernelsColumns> kernels;
  for (const trace::Trace& trace : traces) {
    add_ranges(trace, options, ranges);
    add_kernels(trace, options, kernels);
  }
  return {ranges.take(), kernels.take()};
}

}  // namespace headrace::analysis::device
