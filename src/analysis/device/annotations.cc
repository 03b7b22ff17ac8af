#include "headrace/analysis/device/annotations.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/device/call_statistics.h"
#include "analysis/device/folding.h"
#include "analysis/device/rank_rows.h"

namespace headrace::analysis::device {
namespace {

using trace::Names;
using trace::Row;

struct NamedRange {
  Names::Id name = 0;
  CallStatistics calls;
};

/// The longest in total first.
std::vector<NamedRange> ranges_of(const trace::Trace& trace, const AnnotationsOptions& options) {
  const trace::Columns& columns = trace.columns();
  const Selection selection(trace, options.scope);
  const auto wanted = options.on_device ? trace::EventKind::device_annotation : trace::EventKind::annotation;
  std::vector<std::int32_t> place(columns.names.size(), -1);
  std::vector<NamedRange> ranges;
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] != wanted || !selection.has(row)) continue;
    std::int32_t& at = place[columns.name[row]];
    if (at < 0) {
      at = static_cast<std::int32_t>(ranges.size());
      ranges.push_back({columns.name[row], {}});
    }
    ranges[static_cast<std::size_t>(at)].calls.add(columns.duration_ns[row]);
  }
  std::sort(ranges.begin(), ranges.end(), [&](const NamedRange& a, const NamedRange& b) {
    return std::tuple(-a.calls.total_ns(), columns.names[a.name]) <
           std::tuple(-b.calls.total_ns(), columns.names[b.name]);
  });
  return ranges;
}

/// The table `ranges`, grown rank by rank.
class RangeRows {
 public:
  void add(const trace::Trace& trace, const AnnotationsOptions& options) {
    const Names& names = trace.columns().names;
    const std::vector<NamedRange> ranges = ranges_of(trace, options);
    std::vector<std::int64_t> totals_ns;
    std::int64_t whole_ns = 0;
    for (const NamedRange& range : ranges) {
      totals_ns.push_back(range.calls.total_ns());
      whole_ns += range.calls.total_ns();
    }
    const std::size_t shown = shown_names(totals_ns, options.most_names, options.time_share);
    CallStatistics others;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::string_view name = names[ranges[i].name];
      const bool always =
          std::any_of(options.always_shown.begin(), options.always_shown.end(),
                      [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
      if (i < shown || always) {
        add_row(trace.rank, name, ranges[i].calls, whole_ns);
      } else {
        others.add(ranges[i].calls);
      }
    }
    if (others.calls() > 0) add_row(trace.rank, "others", others, whole_ns);
    if (ranges.empty())
      notes_.push_back("rank " + std::to_string(trace.rank) + " has no annotations on the " +
                       (options.on_device ? "device" : "host"));
  }

  Table finish() {
    Table table;
    table.notes = std::move(notes_);
    table.add("rank", std::move(ranks_)).add("name", std::move(names_));
    figures_.put_into(table);
    return table;
  }

 private:
  void add_row(std::int64_t rank, std::string_view name, const CallStatistics& calls, std::int64_t whole_ns) {
    ranks_.push_back(rank);
    names_.push_back(name);
    figures_.add(calls, whole_ns);
  }

  Integers ranks_;
  Texts names_;
  CallColumns figures_;
  std::vector<std::string> notes_;
};

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

/// The table `kernels`, grown rank by rank.
class KernelRows {
 public:
  void add(const trace::Trace& trace, const AnnotationsOptions& options) {
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
    for (const KernelGroup& group : groups) {
      ranks_.push_back(trace.rank);
      annotations_.push_back(names[group.first.annotation]);
      names_.push_back(names[group.first.name]);
      kinds_.push_back(to_string(group.first.kind));
      figures_.add(group.calls, whole_ns);
    }
    notes_.insert(notes_.end(), all.notes.begin(), all.notes.end());
  }

  Table finish() {
    Table table;
    table.notes = std::move(notes_);
    table.add("rank", std::move(ranks_))
        .add("annotation", std::move(annotations_))
        .add("name", std::move(names_))
        .add("kind", std::move(kinds_));
    figures_.put_into(table);
    return table;
  }

 private:
  Integers ranks_;
  Texts annotations_, names_, kinds_;
  CallColumns figures_;
  std::vector<std::string> notes_;
};

}  // namespace

Annotations annotations(std::span<const trace::Trace> traces, const AnnotationsOptions& options) {
  RangeRows ranges;
  KernelRows kernels;
  for (const trace::Trace& trace : traces) {
    ranges.add(trace, options);
    kernels.add(trace, options);
  }
  return {ranges.finish(), kernels.finish()};
}

}  // namespace headrace::analysis::device
