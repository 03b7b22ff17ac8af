#include "loop_calls.h"

#include <algorithm>
#include <map>
#include <string>

#include "units.h"

namespace headrace::loader_files {

std::vector<Call> calls_on_device(const GetNextFile& file) {
  std::map<std::string, std::size_t> counts;
  for (const GetNext& each : file.calls) ++counts[each.node];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Call> calls;
  for (const GetNext& each : file.calls) {
    if (each.node == most->first) calls.push_back({each.start_s, each.end_s - each.start_s, each.level > 0});
  }
  return calls;
}

std::vector<Call> calls_on_host(const RankFiles& files) {
  const BatchRecords* records = files.batches();
  std::vector<Call> calls;
  if (records == nullptr || !records->has_times) return calls;
  const bool level_is_before = files.device_queue.has_value();
  const bool in_order = !files.pipeline || !files.pipeline->has_queues_per_worker();
  std::optional<std::int64_t> left_before;
  for (const BatchRecord& each : records->batches) {
    if (!each.end_ms || !each.wait_ms) continue;
    Call call;
    call.wait_s = *each.wait_ms * kMillisecond;
    // The end is that of the push where there is one.
    call.start_s = (*each.end_ms - each.push_ms.value_or(0)) * kMillisecond - call.wait_s;
    if (level_is_before && each.level) {
      call.ready = *each.level > 0;
    } else {
      call.ready = *each.wait_ms <= 0 || (!level_is_before && in_order && left_before.value_or(0) > 0);
    }
    left_before = each.level;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace headrace::loader_files
