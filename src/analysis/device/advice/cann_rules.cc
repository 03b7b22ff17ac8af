// What CANN's calls on the host say: operators compiled, launches followed by waits, memory, SyncBatchNorm.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "analysis/device/call_statistics.h"
#include "headrace/analysis/device/figures.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

constexpr const char* kNoCalls = "the trace has no calls of CANN (record CPU activities at Level1 or above)";

/// Calls of the runtime by name, over all ranks.
template <class Wanted>
CallSum calls_where(std::span<const trace::Trace> traces, Wanted wanted) {
  CallSum sum;
  for (const trace::Trace& trace : traces) {
    const trace::Columns& columns = trace.columns();
    std::vector<signed char> known(columns.names.size(), -1);
    for (Row row = 0; row < columns.size(); ++row) {
      if (columns.phase[row] != 'X' || trace::is_on_device(trace.kinds[row])) continue;
      signed char& is = known[columns.name[row]];
      if (is < 0) is = wanted(columns.name_of(row)) ? 1 : 0;
      if (is == 0) continue;
      ++sum.count;
      sum.total_ns += columns.duration_ns[row];
    }
  }
  return sum;
}

/// `lower_case` anywhere in `text`, in any case.
bool holds(std::string_view text, std::string_view lower_case) {
  return std::search(text.begin(), text.end(), lower_case.begin(), lower_case.end(), [](char a, char b) {
           return static_cast<char>(std::tolower(static_cast<unsigned char>(a))) == b;
         }) != text.end();
}

}  // namespace

Findings check_operator_compilation(Evidence& evidence) {
  if (!evidence.has_cann()) return not_checked(kNoCalls);
  const CallSum sum = calls_where(evidence.traces(), [](std::string_view name) {
    return name == "AscendCL@aclopCompileAndExecute" || name == "AscendCL@aclopCompileAndExecuteV2";
  });
  const std::string figures =
      std::to_string(sum.count) + " calls, " + duration(seconds(sum.total_ns)) + " in all";
  const std::string source = "calls AscendCL@aclopCompileAndExecute, limit " +
                             std::to_string(kLimits.compiled_operators) + " a rank";
  const auto ranks = std::max<std::int64_t>(1, static_cast<std::int64_t>(evidence.traces().size()));
  return found_if(
      sum.count >= kLimits.compiled_operators * ranks, "few operators are compiled while the step runs",
      {Severity::high, "operators are compiled while the step runs", figures,
       "torch_npu.npu.set_compile_mode(jit_compile=False) and torch_npu.npu.config.allow_internal_format "
       "= False",
       source});
}

Findings check_synchronised_launches(Evidence& evidence) {
  if (!evidence.has_cann()) return not_checked(kNoCalls);
  std::int64_t launches = 0;
  std::int64_t synchronised = 0;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    const trace::Names::Id launch = columns.names.find("Node@launch");
    const trace::Names::Id wait = columns.names.find("AscendCL@aclrtSynchronizeStream");
    if (launch == trace::Names::missing) continue;
    std::vector<Row> calls;
    for (Row row = 0; row < columns.size(); ++row) {
      if (trace.kinds[row] == EventKind::runtime &&
          (columns.name[row] == launch || columns.name[row] == wait))
        calls.push_back(row);
    }
    std::sort(calls.begin(), calls.end(), [&](Row a, Row b) {
      return std::pair(columns.start_ns[a], a) < std::pair(columns.start_ns[b], b);
    });
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (columns.name[calls[i]] == launch) {
        ++launches;
      } else if (i > 0 && columns.name[calls[i - 1]] == launch) {
        ++synchronised;
      }
    }
  }
  if (launches == 0) return not_checked("the trace has no Node@launch");
  const double share = static_cast<double>(synchronised) / static_cast<double>(launches);
  const std::string figures = std::to_string(synchronised) + " of " + std::to_string(launches) +
                              " launches are followed by a wait, " + percent(share);
  const std::string source = "AscendCL@aclrtSynchronizeStream behind Node@launch, limit " +
                             percent(kLimits.synchronised_launch_share);
  return found_if(share > kLimits.synchronised_launch_share, "launches are asynchronous",
                  {Severity::high, "most launches wait until the device has done them", figures,
                   "unset ASCEND_LAUNCH_BLOCKING", source});
}

Findings check_memory_calls(Evidence& evidence) {
  if (!evidence.has_cann()) return not_checked(kNoCalls);
  constexpr std::array<std::string_view, 3> kCalls = {"AscendCL@aclMallocMemInner",
                                                      "AscendCL@aclrtFreePhysical", "AscendCL@aclrtFree"};
  const CallSum sum = calls_where(evidence.traces(), [&](std::string_view name) {
    return std::find(kCalls.begin(), kCalls.end(), name) != kCalls.end();
  });
  const std::string figures =
      std::to_string(sum.count) + " calls, " + duration(seconds(sum.total_ns)) + " in all";
  const std::string source = "calls aclMallocMemInner, aclrtFreePhysical and aclrtFree, limit " +
                             duration(seconds(kLimits.memory_calls_ns));
  return found_if(
      sum.total_ns >= kLimits.memory_calls_ns, "memory of the device is seldom taken or given back",
      {Severity::medium, "the step takes and gives back memory of the device", figures,
       "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, no torch_npu.npu.empty_cache() in the loop, or a "
       "smaller batch",
       source});
}

Findings check_sync_batch_norm(Evidence& evidence) {
  if (evidence.traces().empty()) return not_checked("there is no trace");
  const CallSum sum =
      calls_where(evidence.traces(), [](std::string_view name) { return holds(name, "syncbatchnorm"); });
  const std::string figures = std::to_string(sum.count) + " calls";
  const std::string source =
      "events whose name contains SyncBatchNorm, limit " + std::to_string(kLimits.batch_norm_calls);
  return found_if(
      sum.count >= kLimits.batch_norm_calls, "SyncBatchNorm is not used much",
      {Severity::medium, "SyncBatchNorm communicates in every layer", figures,
       "BatchNorm or GroupNorm if the batch of one device is large enough; else synchronise fewer layers",
       source});
}

}  // namespace headrace::analysis::device
