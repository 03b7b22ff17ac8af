#include "headrace/analysis/device/idle_breakdown.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "headrace/analysis/device/describe.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
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
