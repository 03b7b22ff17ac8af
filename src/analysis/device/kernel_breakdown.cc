#include "headrace/analysis/device/kernel_breakdown.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

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

  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::array<std::size_t, kKernelKinds> next{};  // boundaries: twice the intervals, begins are even
  const auto boundary = [&](std::size_t kind) {
    const std::size_t at = next[kind] / 2;
    if (at == of_kind[kind].size()) return kNever;
    return next[kind] % 2 == 0 ? of_kind[kind][at].begin_ns : of_kind[kind][at].end_ns;
  };
  std::array<std::int64_t, kCombinations> time_ns{};
  std::size_t running = 0;
  std::int64_t since_ns = 0;
  while (true) {
    std::int64_t now_ns = kNever;
    for (std::size_t kind = 0; kind < kKernelKinds; ++kind) now_ns = std::min(now_ns, boundary(kind));
    if (now_ns == kNever) break;
    if (running != 0) time_ns[running] += now_ns - since_ns;
    since_ns = now_ns;
    for (std::size_t kind = 0; kind < kKernelKinds; ++kind) {
      if (boundary(kind) != now_ns) continue;
      running ^= std::size_t{1} << kind;
      ++next[kind];
    }
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

}  // namespace

Table kernel_breakdown(std::span<const trace::Trace> traces, const DeviceOptions& options) {
  Rows<KernelBreakdownColumns> rows;
  rows.show<"device">(options.per_device);
  for (const trace::Trace& trace : traces) {
    DeviceWork all = device_work(trace, options.scope);
    rows.take_notes(all.notes);
    for (const WorkOf& each : std::move(all).by_device(options.per_device)) {
      const auto time_ns = time_by_combination(each.work);
      const std::int64_t busy_ns = std::accumulate(time_ns.begin(), time_ns.end(), std::int64_t{0});
      for (const std::size_t combination :
           descending_order(kCombinations, [&](std::size_t each) { return time_ns[each]; })) {
        if (time_ns[combination] == 0) break;
        rows.add(trace.rank, each.of.device, name_of(combination), seconds(time_ns[combination]),
                 percent(time_ns[combination], busy_ns));
      }
    }
  }
  return rows.take();
}

}  // namespace headrace::analysis::device
