#include "headrace/analysis/device/device_idle.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/order.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/profile/device_profile.h"

namespace headrace::analysis::device {
namespace {

using profile::IdleReason;

constexpr auto kCauses = names_of(IdleReason{});
/// When the device did not compute, by cause; disjoint.
class ByCause : public std::array<Intervals, kCauses.size()> {
 public:
  using std::array<Intervals, kCauses.size()>::operator[];
  Intervals& operator[](IdleReason cause) { return (*this)[static_cast<std::size_t>(cause)]; }
};

/// Charges one gap in which nothing ran, and which ends with the start of `next`.
void charge(const trace::Trace& trace, Interval gap, const Work& next, std::span<const Interval> waits,
            bool after_older_work, const DeviceIdleOptions& options, ByCause& result) {
  const trace::Row call = trace.correlation.launch_of(next.row);
  const bool launched = call != trace::kNoRow;
  // Until it is launched the host holds it up. Where that is not known, a wait for the input says so.
  std::int64_t launched_ns =
      launched ? std::clamp(trace.columns().start_ns[call], gap.begin_ns, gap.end_ns) : gap.end_ns;
  // A call that lasts (the first, which loads the kernel's module) holds it up until the call's own end.
  if (launched && trace.columns().duration_ns[call] >= options.consecutive_kernel_delay_ns)
    launched_ns = std::clamp(trace.columns().end_ns(call), launched_ns, gap.end_ns);
  const Intervals before = merged({{gap.begin_ns, launched_ns}});
  for (const Interval& wait : intersected(before, waits)) append(result[IdleReason::input], wait);
  for (const Interval& rest : subtracted(before, waits))
    append(result[launched && !after_older_work ? IdleReason::launch : IdleReason::unknown], rest);
  const bool short_gap = gap.end_ns - launched_ns < options.consecutive_kernel_delay_ns;
  append(result[short_gap ? IdleReason::kernel_gap : IdleReason::unknown], {launched_ns, gap.end_ns});
}

ByCause causes_of(const trace::Trace& trace, std::span<const Work> work, Interval whole,
                  const Intervals& waits, const DeviceIdleOptions& options) {
  const Intervals computing = united(busy(work, KernelKind::computation), busy(work, KernelKind::other));
  const Intervals collectives = busy(work, KernelKind::communication);
  ByCause result;
  result[IdleReason::communication] = subtracted(collectives, computing);
  result[IdleReason::copy] = subtracted(subtracted(busy(work, KernelKind::memory), computing), collectives);

  auto next = work.begin();
  auto wait = waits.begin();
  for (const Interval& gap : subtracted(std::array{whole}, busy(work))) {
    while (next != work.end() && next->start_ns < gap.end_ns) ++next;
    while (wait != waits.end() && wait->end_ns <= gap.begin_ns) ++wait;
    auto behind = wait;
    while (behind != waits.end() && behind->begin_ns < gap.end_ns) ++behind;
    if (next != work.end()) {
      // What the device did before the first recorded work is not in the file where the host waited for it.
      const bool after_older_work = next == work.begin() && !trace::waits_for_older_work(trace).empty();
      charge(trace, gap, *next, std::span(wait, behind), after_older_work, options, result);
    } else {
      append(result[IdleReason::unknown], gap);
    }
  }
  return result;
}

/// The steps' windows, or one over all that the device did if there are no steps.
std::vector<StepWindow> windows_of(const trace::Trace& trace, std::span<const Work> work) {
  if (work.empty()) return {};
  std::vector<StepWindow> windows;
  if (trace.clock_gap_ns == 0) windows = step_windows(trace, step_pieces(trace));
  if (windows.empty()) windows.push_back({trace::kAbsent, trace::Steps::kNone, *unmarked_step(trace)});
  return windows;
}

}  // namespace

DeviceIdle device_idle(const trace::Trace& trace, std::span<const Interval> waits,
                       const DeviceIdleOptions& options) {
  const DeviceWork all = device_work(trace, Scope::everything());
  const std::vector<StepWindow> windows = windows_of(trace, all.work);
  const Intervals sorted_waits = merged(std::vector<Interval>(waits.begin(), waits.end()));

  Rows<DeviceIdleColumns> steps;
  Rows<DeviceIdleTotalColumns> total;
  steps.take_notes(all.notes);
  if (!windows.empty() && waits.empty())
    steps.note(trace.rank, ": no waits for the input are known, so none of its idle time is charged to it");
  total.notes = steps.notes;
  ByCause causes;
  if (!windows.empty()) {
    const Interval whole{windows.front().time.begin_ns, windows.back().time.end_ns};
    causes = causes_of(trace, all.work, whole, sorted_waits, options);
  }
  const std::vector<Cover> covers(causes.begin(), causes.end());

  std::array<std::int64_t, kCauses.size()> sums_ns{};
  for (const StepWindow& window : windows) {
    std::array<double, kCauses.size()> parts_s{};
    std::int64_t idle_ns = 0;
    for (std::size_t cause = 0; cause < kCauses.size(); ++cause) {
      const std::int64_t part_ns = covers[cause].within(window.time);
      parts_s[cause] = seconds(part_ns);
      sums_ns[cause] += part_ns;
      idle_ns += part_ns;
    }
    steps.add(trace.rank, window.number, seconds(window.time.end_ns - window.time.begin_ns), seconds(idle_ns),
              parts_s);
  }

  const std::int64_t whole_ns = std::accumulate(sums_ns.begin(), sums_ns.end(), std::int64_t{0});
  for (const std::size_t cause :
       descending_order(kCauses.size(), [&](std::size_t each) { return sums_ns[each]; })) {
    if (windows.empty()) break;
    total.add(trace.rank, kCauses[cause], seconds(sums_ns[cause]), percent(sums_ns[cause], whole_ns));
  }
  return {steps.take(), total.take()};
}

}  // namespace headrace::analysis::device
