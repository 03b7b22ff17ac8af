// Calls that keep the host from launching: those that take and free memory, and those that cost much once.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/advice/held_up.h"
#include "analysis/device/advice/rule.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/device_work.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

struct CallsOfName {
  std::int64_t time_ns = 0;
  std::int64_t calls = 0;
  std::set<std::int64_t> steps;
};

/// "; most of it in backend_compile, 2 calls, 1.60 s, in steps 0 and 1".
std::string text_of(std::string_view name, const CallsOfName& calls) {
  std::string text = "; most of it in " + std::string(name) + ", " +
                     counted(static_cast<double>(calls.calls), "call") + ", " +
                     duration(seconds(calls.time_ns));
  constexpr std::size_t kFew = 3;  // more are a list that nobody reads
  if (calls.steps.empty() || calls.steps.size() > kFew) return text;
  text += calls.steps.size() == 1 ? ", in step " : ", in steps ";
  for (const std::int64_t step : calls.steps) {
    if (step != *calls.steps.begin()) text += step == *calls.steps.rbegin() ? " and " : ", ";
    text += std::to_string(step);
  }
  return text;
}

/// The rank that spends the largest share of `whole` in some calls, and the name that most of it is in.
class CostOfCalls {
 public:
  /// `hidden`: while it lasts the calls cost nothing.
  void add(const trace::Trace& trace, Interval whole, const std::vector<HostCall>& calls,
           const Intervals& hidden) {
    std::vector<Interval> times;
    std::map<std::string_view, CallsOfName> by_name;
    for (const HostCall& each : calls) {
      CallsOfName& of_name = by_name[trace.columns().name_of(each.row)];
      of_name.time_ns += total_ns(subtracted(Intervals{each.time}, hidden));
      ++of_name.calls;
      if (const std::int32_t step = trace.steps.step_of(each.row); step != trace::Steps::kNone)
        of_name.steps.insert(trace.steps.all()[static_cast<std::size_t>(step)].number);
      times.push_back(each.time);
    }
    keep_worst(worst, {&trace, trace.rank, seconds(total_ns(subtracted(merged(std::move(times)), hidden))),
                       seconds(whole.end_ns - whole.begin_ns)});
    const auto most = std::max_element(by_name.begin(), by_name.end(), [](const auto& a, const auto& b) {
      return a.second.time_ns < b.second.time_ns;
    });
    if (worst.trace == &trace) longest = most == by_name.end() ? "" : text_of(most->first, most->second);
  }

  RankShare worst;
  std::string longest;
};

constexpr const char* kNoHost = "the trace has no event of the host";

}  // namespace

Findings check_allocation_calls(Evidence& evidence) {
  CostOfCalls cost;
  for (const trace::Trace& trace : evidence.traces()) {
    const auto whole = worked_time(trace);
    if (!whole) continue;
    std::vector<HostCall> calls = memory_calls(trace);
    // Those before the first launch are start-up: one of them makes CUDA's context.
    std::erase_if(calls, [&](const HostCall& call) { return call.time.begin_ns < whole->begin_ns; });
    cost.add(trace, *whole, calls, {});
  }
  const RankShare& worst = cost.worst;
  if (worst.trace == nullptr) return not_checked(kNoHost);
  const std::string figures = figures_of(worst, "in such calls for") + cost.longest;
  const std::string source =
      "calls of the runtime that take or free memory, limit " + percent(kLimits.memory_call_share);
  return found_if(
      worst.share() > kLimits.memory_call_share, "memory of the device is seldom taken or given back",
      {severity_of_share(worst.share()), "the host spends its time taking and freeing memory of the device",
       figures,
       "let PyTorch's allocator keep it: no PYTORCH_NO_CUDA_MEMORY_CACHING, no torch.cuda.empty_cache() in "
       "the loop; if memory is short, a smaller batch or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
       "if it is only the first step, warm up before recording",
       source, worst.share()});
}

Findings check_one_off_calls(Evidence& evidence) {
  CostOfCalls cost;
  for (const trace::Trace& trace : evidence.traces()) {
    if (const auto whole = recorded_time(trace))
      cost.add(trace, *whole, one_offs(trace), busy(device_work(trace, Scope::everything()).work));
  }
  const RankShare& worst = cost.worst;
  if (worst.trace == nullptr) return not_checked(kNoHost);
  const std::string figures = figures_of(worst, "the device idle in them for") + cost.longest;
  const std::string source =
      "calls of a millisecond that are no waits, compilations, captures of graphs; limit " +
      percent(kLimits.one_off_share);
  return found_if(
      worst.share() > kLimits.one_off_share, "no call that costs much once takes much of the recording",
      {severity_of_share(worst.share()),
       "a few calls take much of the recording: a module is loaded, code compiled or a graph captured",
       figures,
       "run the first steps before you record (wait and warmup of the profiler's schedule); if later "
       "steps do "
       "it, too, their shapes change",
       source, worst.share()});
}

}  // namespace headrace::analysis::device
