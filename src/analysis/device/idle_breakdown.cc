#include "headrace/analysis/device/idle_breakdown.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "analysis/device/description_columns.h"
#include "analysis/device/rank_rows.h"
#include "analysis/device/stream_rows.h"
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
  IdleBreakdown result;
  StreamRows rows, interval_rows;
  Texts categories, interval_categories;
  Integers counts;
  Numbers idle_s, idle_pct;
  DescriptionColumns intervals;
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    take_notes(result.idle, all.notes);
    for (const WorkOf& each : std::move(all).by_stream()) {
      const GapLengths gaps = gaps_of(trace, each.work, options.consecutive_kernel_delay_ns);
      const std::int64_t whole_ns = sum(gaps[host_wait]) + sum(gaps[kernel_wait]) + sum(gaps[other]);
      for (std::size_t category = 0; category < kCategories.size(); ++category) {
        rows.add(trace.rank, each.of);
        categories.push_back(kCategories[category]);
        counts.push_back(static_cast<std::int64_t>(gaps[category].size()));
        idle_s.push_back(seconds(sum(gaps[category])));
        idle_pct.push_back(percent(sum(gaps[category]), whole_ns));
        if (!options.interval_statistics) continue;
        interval_rows.add(trace.rank, each.of);
        interval_categories.push_back(kCategories[category]);
        intervals.add(describe(std::vector<double>(gaps[category].begin(), gaps[category].end())), 1e-9);
      }
    }
  }
  rows.put_into(result.idle);
  result.idle.add("category", std::move(categories))
      .add("gaps", std::move(counts))
      .add("idle_s", std::move(idle_s))
      .add("idle_pct", std::move(idle_pct));
  if (options.interval_statistics) {
    interval_rows.put_into(result.intervals);
    result.intervals.add("category", std::move(interval_categories));
    intervals.put_into(result.intervals, "_s");
  }
  return result;
}

}  // namespace headrace::analysis::device
