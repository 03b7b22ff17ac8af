#include "headrace/analysis/device/time_breakdown.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/named_calls.h"
#include "analysis/device/order.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

constexpr std::size_t kCombinations = std::size_t{1} << kKernelKinds;

/// Time by the set of kinds that ran, one bit per kind.
std::array<std::int64_t, kCombinations> time_by_combination(std::span<const Work> work) {
  std::array<Intervals, kKernelKinds> of_kind;
  for (const Work& each : work)
    append(of_kind[static_cast<std::size_t>(each.kind)], {each.start_ns, each.end_ns});

  const Intervals any = busy(work);
  std::array<std::int64_t, kCombinations> time_ns{};
  for (std::size_t combination = 1; combination < kCombinations; ++combination) {
    Intervals those = any;
    for (std::size_t kind = 0; kind < kKernelKinds && !those.empty(); ++kind) {
      const bool runs = (combination >> kind & 1U) != 0;
      those = runs ? intersected(those, of_kind[kind]) : subtracted(those, of_kind[kind]);
    }
    time_ns[combination] = total_ns(those);
  }
  return time_ns;
}

std::string name_of(std::size_t combination) {
  std::string name;
  for (std::size_t kind = 0; kind < kKernelKinds; ++kind) {
    if ((combination >> kind & 1U) == 0) continue;
    name += name.empty() ? "" : " overlapping ";
    name += to_string(static_cast<KernelKind>(kind));
  }
  return name;
}

/// A table of what `add` makes of the work of each rank, or of each device of it.
template <class Columns, class Add>
Table by_device(std::span<const trace::Trace> traces, const DeviceOptions& options, Add add) {
  Rows<Columns> rows;
  rows.template show<"device">(options.per_device);
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) add(rows, trace.rank, each);
  }
  return rows.take();
}

}  // namespace

Table time_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  return by_device<TimeBreakdownColumns>(
      traces, options, [](auto& rows, std::int64_t rank, const WorkOf& each) {
        const std::int64_t span = span_ns(each.work);
        const std::int64_t busy_ns = total_ns(busy(each.work));
        const std::int64_t compute_ns = total_ns(busy(each.work, KernelKind::computation));
        rows.add(rank, each.of.device, seconds(span - busy_ns), seconds(compute_ns),
                 seconds(busy_ns - compute_ns), seconds(span), percent(span - busy_ns, span),
                 percent(compute_ns, span), percent(busy_ns - compute_ns, span));
      });
}

Table overlap(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  return by_device<OverlapColumns>(traces, options, [](auto& rows, std::int64_t rank, const WorkOf& each) {
    const Intervals communication = busy(each.work, KernelKind::communication);
    const Intervals computation = busy(each.work, KernelKind::computation);
    const std::int64_t both_ns = total_ns(intersected(communication, computation));
    rows.add(rank, each.of.device, seconds(total_ns(communication)), seconds(total_ns(computation)),
             seconds(both_ns), percent(both_ns, total_ns(communication)));
    if (communication.empty()) rows.note(rank, " has no communication");
  });
}

Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  return by_device<KernelBreakdownColumns>(
      traces, options, [](auto& rows, std::int64_t rank, const WorkOf& each) {
        const auto time_ns = time_by_combination(each.work);
        const std::int64_t busy_ns = std::accumulate(time_ns.begin(), time_ns.end(), std::int64_t{0});
        for (const std::size_t combination :
             descending_order(kCombinations, [&](std::size_t one) { return time_ns[one]; })) {
          if (time_ns[combination] == 0) break;
          rows.add(rank, each.of.device, name_of(combination), seconds(time_ns[combination]),
                   percent(time_ns[combination], busy_ns));
        }
      });
}

Table kernels(std::span<const trace::Trace> traces, const KernelsOptions& options) {
  Rows<KernelsColumns> rows;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    const DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    CallsByName by_name(columns.names);
    for (const Work& each : all.work) {
      if (options.memory || each.kind != KernelKind::memory)
        by_name.add(columns.name[each.row], each.kind, each.end_ns - each.start_ns);
    }
    const std::vector<NamedCalls> calls = by_name.take();
    const std::int64_t whole_ns = total_ns(calls);
    for (const NamedCalls& each : folded(calls, {options.most_names, options.time_share}))
      rows.add(trace.rank, each.name, to_string(each.kind), call_figures(each.calls, whole_ns));
  }
  return rows.take();
}

namespace {

constexpr std::array<const char*, 3> kCategories = {"host_wait", "kernel_wait", "other"};
enum Category : std::size_t { host_wait, kernel_wait, other };

/// Lengths of the gaps of one stream by category.
using GapLengths = std::array<std::vector<std::int64_t>, kCategories.size()>;

GapLengths gaps_of(const trace::Trace& trace, std::span<const Work> work, std::int64_t consecutive_ns) {
  GapLengths gaps;
  std::int64_t end_ns = work.empty() ? 0 : work.front().start_ns;
  for (const Work& each : work) {
    const std::int64_t gap_ns = each.start_ns - end_ns;
    if (gap_ns > 0) {
      const trace::Row launch = trace.correlation.launch_of(each.row);
      Category category = gap_ns < consecutive_ns ? kernel_wait : other;
      if (launch != trace::kNoRow && trace.columns().start_ns[launch] > end_ns) category = host_wait;
      gaps[category].push_back(gap_ns);
    }
    end_ns = std::max(end_ns, each.end_ns);
  }
  return gaps;
}

std::int64_t sum(const std::vector<std::int64_t>& lengths) {
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) total += length;
  return total;
}

}  // namespace

IdleBreakdown idle_breakdown(std::span<const trace::Trace> traces, const IdleBreakdownOptions& options) {
  Rows<IdleBreakdownColumns> rows;
  Rows<IdleIntervalsColumns> intervals;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    for (const WorkOf& each : std::move(all).by_stream()) {
      const GapLengths gaps = gaps_of(trace, each.work, options.consecutive_kernel_delay_ns);
      const std::int64_t whole_ns = sum(gaps[host_wait]) + sum(gaps[kernel_wait]) + sum(gaps[other]);
      for (std::size_t category = 0; category < kCategories.size(); ++category) {
        const auto& lengths_ns = gaps[category];
        rows.add(trace.rank, each.of.device, each.of.stream, kCategories[category], lengths_ns.size(),
                 seconds(sum(lengths_ns)), percent(sum(lengths_ns), whole_ns));
        if (!options.interval_statistics) continue;
        const Description figures = describe(std::vector<double>(lengths_ns.begin(), lengths_ns.end()));
        intervals.add(trace.rank, each.of.device, each.of.stream, kCategories[category], figures.count,
                      figures.mean * 1e-9, figures.std * 1e-9, figures.min * 1e-9, figures.p25 * 1e-9,
                      figures.p50 * 1e-9, figures.p75 * 1e-9, figures.max * 1e-9);
      }
    }
  }
  return {rows.take(), options.interval_statistics ? intervals.take() : Table{}};
}

}  // namespace headrace::analysis::device
