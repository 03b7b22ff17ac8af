// Calls of CUDA's and ROCm's runtime that take and free memory: they wait for the device, and the host launches nothing.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/device/advice/held_up.h"
#include "analysis/device/advice/rule.h"
#include "analysis/device/names_that.h"
#include "analysis/device/step_windows.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {

Findings check_allocation_calls(Evidence& evidence) {
  double worst_share = -1;
  std::string figures;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    const auto whole = recorded_time(trace);
    if (!whole) continue;
    const std::vector<bool> wanted = names_that(columns, is_memory_call);
    std::map<trace::Names::Id, std::pair<std::int64_t, std::int64_t>> calls;  // time and number by name
    std::int64_t total = 0;
    for (trace::Row row = 0; row < columns.size(); ++row) {
      if (trace.kinds[row] != trace::EventKind::runtime || !wanted[columns.name[row]]) continue;
      auto& [time, count] = calls[columns.name[row]];
      time += columns.duration_ns[row];
      total += columns.duration_ns[row];
      ++count;
    }
    const double share = seconds(total) / std::max(seconds(whole->end_ns - whole->begin_ns), 1e-9);
    if (share <= worst_share) continue;
    worst_share = share;
    figures = rank_text(trace.rank) + ": " + duration(seconds(total)) + " of " +
              duration(seconds(whole->end_ns - whole->begin_ns)) + ", " + percent(share);
    const auto longest = std::max_element(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
      return a.second.first < b.second.first;
    });
    if (longest != calls.end())
      figures += "; most of it in " + std::string(columns.names[longest->first]) + ", " +
                 counted(static_cast<double>(longest->second.second), "call");
  }
  if (worst_share < 0) return not_checked("the trace has no event of the host");
  const std::string source =
      "calls of the runtime that take or free memory, limit " + percent(kLimits.memory_call_share);
  if (worst_share <= kLimits.memory_call_share)
    return nothing_found("memory of the device is seldom taken or given back", figures, source);
  return {
      {severity_of_share(worst_share), "the host spends its time taking and freeing memory of the device",
       figures,
       "let PyTorch's allocator keep it: no PYTORCH_NO_CUDA_MEMORY_CACHING, no torch.cuda.empty_cache() in "
       "the loop; if memory is short, a smaller batch or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; "
       "if it is only the first step, warm up before recording",
       source}};
}

}  // namespace headrace::analysis::device
