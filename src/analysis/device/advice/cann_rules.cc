// The host of an Ascend device: calls of CANN, operators that the device has in one piece, variables.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/device/advice/rule.h"
#include "analysis/device/callers.h"
#include "analysis/device/named_calls.h"
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
    const std::vector<bool> is_wanted = names_that(columns, wanted);
    for (Row row = 0; row < columns.size(); ++row) {
      if (columns.phase[row] != 'X' || trace::is_on_device(trace.kinds[row])) continue;
      if (!is_wanted[columns.name[row]]) continue;
      ++sum.count;
      sum.total_ns += columns.duration_ns[row];
    }
  }
  return sum;
}

std::string text_of(const CallSum& sum) {
  return std::to_string(sum.count) + " calls, " + duration(seconds(sum.total_ns)) + " in all";
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
  const auto ranks = std::max<std::int64_t>(1, static_cast<std::int64_t>(evidence.traces().size()));
  return found_if(sum.count >= kLimits.compiled_operators * ranks,
                  {Severity::high, text_of(sum),
                   "calls AscendCL@aclopCompileAndExecute, limit " +
                       std::to_string(kLimits.compiled_operators) + " a rank"});
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
  return found_if(share > kLimits.synchronised_launch_share, {Severity::high, figures, source});
}

Findings check_memory_calls(Evidence& evidence) {
  if (!evidence.has_cann()) return not_checked(kNoCalls);
  constexpr std::array<std::string_view, 3> kCalls = {"AscendCL@aclMallocMemInner",
                                                      "AscendCL@aclrtFreePhysical", "AscendCL@aclrtFree"};
  const CallSum sum = calls_where(evidence.traces(), [&](std::string_view name) {
    return std::find(kCalls.begin(), kCalls.end(), name) != kCalls.end();
  });
  return found_if(sum.total_ns >= kLimits.memory_calls_ns,
                  {Severity::medium, text_of(sum),
                   "calls aclMallocMemInner, aclrtFreePhysical and aclrtFree, limit " +
                       duration(seconds(kLimits.memory_calls_ns))});
}

Findings check_sync_batch_norm(Evidence& evidence) {
  if (evidence.traces().empty()) return not_checked("there is no trace");
  const CallSum sum =
      calls_where(evidence.traces(), [](std::string_view name) { return holds(name, "syncbatchnorm"); });
  return found_if(
      sum.count >= kLimits.batch_norm_calls,
      {Severity::medium, std::to_string(sum.count) + " calls",
       "events whose name contains SyncBatchNorm, limit " + std::to_string(kLimits.batch_norm_calls)});
}

namespace {

/// Names of operators one after the other, without namespace and trailing underscore; "*" is up to
/// `kMaxBetween` others.
struct Pattern {
  std::array<std::string_view, 6> names;
  const char* instead;
};
constexpr std::size_t kMaxBetween = 4;
constexpr std::array<Pattern, 9> kPatterns = {{
    {{"matmul", "*", "softmax", "*", "matmul"}, "torch_npu.npu_fusion_attention"},
    {{"mul", "masked_fill", "softmax"}, "torch_npu.npu_scaled_masked_softmax"},
    {{"mul", "*", "softmax"}, "torch_npu.npu_scaled_masked_softmax"},
    {{"chunk", "neg", "cat", "mul", "add"}, "torch_npu.npu_rotary_mul"},
    {{"pow", "mean", "add", "rsqrt", "mul"}, "torch_npu.npu_rms_norm"},
    {{"slice", "silu", "mul"}, "torch_npu.npu_swiglu"},
    {{"chunk", "silu", "mul"}, "torch_npu.npu_swiglu"},
    {{"gelu"}, "torch_npu.fast_gelu"},
    {{"confusion_transpose"}, "torch_npu.npu_confusion_transpose"},
}};
/// Optimizers of which the device's library has a fused one.
constexpr std::array<std::string_view, 8> kOptimizers = {"Adam",     "AdamW", "SGD",   "RMSprop",
                                                         "Adadelta", "Lamb",  "AdamP", "BertAdam"};

std::string_view plain(std::string_view name) noexcept {
  constexpr std::string_view kNamespace = "aten::";
  if (!name.starts_with(kNamespace)) return {};
  name.remove_prefix(kNamespace.size());
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

/// True if `pattern` begins at `sequence[at]`; `end` is behind its last operator then.
bool matches(const Pattern& pattern, const std::vector<std::string_view>& sequence, std::size_t at,
             std::size_t& end) {
  std::size_t between = 0;
  for (const std::string_view name : pattern.names) {
    if (name.empty()) break;
    if (name == "*") {
      between = kMaxBetween;
      continue;
    }
    std::size_t skipped = 0;
    while (at + skipped < sequence.size() && sequence[at + skipped] != name && skipped < between) ++skipped;
    if (at + skipped >= sequence.size() || sequence[at + skipped] != name) return false;
    at += skipped + 1;
    between = 0;
  }
  end = at;
  return true;
}

/// The outermost operators of each thread, in the order of time.
std::vector<std::vector<std::string_view>> sequences_of(const trace::Trace& trace) {
  const trace::Columns& columns = trace.columns();
  std::map<std::uint32_t, std::vector<Row>> threads;
  for (Row row = 0; row < columns.size(); ++row) {
    if (trace.kinds[row] != EventKind::operation || plain(columns.name_of(row)).empty()) continue;
    const Row caller = trace.calls.parent_of(row);
    const bool inside = caller != trace::kNoRow && trace.kinds[caller] == EventKind::operation &&
                        !plain(columns.name_of(caller)).empty();
    if (!inside) threads[columns.lane[row]].push_back(row);
  }
  std::vector<std::vector<std::string_view>> sequences;
  for (auto& [lane, rows] : threads) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](Row a, Row b) { return columns.start_ns[a] < columns.start_ns[b]; });
    std::vector<std::string_view>& names = sequences.emplace_back();
    for (const Row row : rows) names.push_back(plain(columns.name_of(row)));
  }
  return sequences;
}

}  // namespace

Findings check_affinity_apis(Evidence& evidence) {
  if (!evidence.has_cann()) return not_checked("the trace is not of an Ascend device");
  std::map<std::string, std::int64_t> found;
  std::size_t operators = 0;
  for (const trace::Trace& trace : evidence.traces()) {
    const trace::Columns& columns = trace.columns();
    for (const std::vector<std::string_view>& sequence : sequences_of(trace)) {
      operators += sequence.size();
      for (std::size_t at = 0; at < sequence.size();) {
        std::size_t end = at + 1;
        for (const Pattern& pattern : kPatterns) {
          if (!matches(pattern, sequence, at, end)) continue;
          ++found[pattern.instead];
          break;
        }
        at = end;
      }
    }
    for (trace::Names::Id id = 0; id < columns.names.size(); ++id) {
      for (const std::string_view optimizer : kOptimizers) {
        const std::string step = "Optimizer.step#" + std::string(optimizer) + ".step";
        if (columns.names[id] == step) ++found["torch_npu.optim.NpuFused" + std::string(optimizer)];
      }
    }
  }
  const std::string source = "outermost aten:: operators of each thread, and names of optimizers";
  if (operators == 0) return not_checked("the trace has no operators of the framework");
  if (found.empty()) return {{Severity::none, std::to_string(operators) + " operators", source}};
  std::string figures;
  std::string cure = "call ";
  for (const auto& [instead, count] : found) {
    figures += (figures.empty() ? "" : ", ") + std::to_string(count) + " x " + instead;
    cure += (cure == "call " ? "" : ", ") + instead;
  }
  return {{Severity::low, figures, source, 0, "", cure + " instead, where shapes and types allow it"}};
}

namespace {

constexpr const char* kSource = "ENV_VARIABLES of profiler_metadata.json or the database";

std::optional<std::int64_t> integer_of(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Findings check_environment(Evidence& evidence) {
  const auto& variables = evidence.environment();
  if (!variables) return not_checked("file profiler_metadata.json absent, or without ENV_VARIABLES");
  Findings findings;
  // A variable that the file does not list was not recorded, so nothing is said about it.
  const auto check = [&](const char* name, auto wrong, Severity severity, const char* says,
                         const char* cure) {
    const auto at = variables->find(name);
    if (at == variables->end() || !wrong(at->second)) return;
    findings.push_back({severity, std::string(name) + "=\"" + at->second + "\"", kSource, 0, says, cure});
  };
  const auto is_set = [](const std::string& value) { return !value.empty(); };
  check(
      "ASCEND_LAUNCH_BLOCKING", [](const std::string& value) { return value == "1"; }, Severity::high,
      "every launch waits for the device", "unset ASCEND_LAUNCH_BLOCKING");
  check(
      "ASCEND_GLOBAL_LOG_LEVEL", [](const std::string& value) { return !value.empty() && value != "3"; },
      Severity::medium, "the runtime writes logs below the level of errors", "ASCEND_GLOBAL_LOG_LEVEL=3");
  check(
      "ACLNN_CACHE_LIMIT",
      [](const std::string& value) {
        const auto limit = integer_of(value);
        return !limit || *limit < kAdviceThresholds.aclnn_cache_limit;
      },
      Severity::low, "the cache of operators may be too small", "ACLNN_CACHE_LIMIT=100000");
  check(
      "HOST_CACHE_CAPACITY", [](const std::string& value) { return value.empty() || value == "0"; },
      Severity::low, "the host has no cache of launched operators", "HOST_CACHE_CAPACITY=20");
  check(
      "PYTORCH_NPU_ALLOC_CONF",
      [](const std::string& value) { return value.find("expandable_segments:True") == std::string::npos; },
      Severity::low, "memory of the device may fragment", "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True");
  for (const char* name : {"HCCL_RDMA_TC", "HCCL_RDMA_SL", "HCCL_ALGO"})
    check(name, is_set, Severity::low, "communication does not use its own settings",
          "unset it, unless the network was tuned for this value");
  if (findings.empty())
    findings.push_back({Severity::none, std::to_string(variables->size()) + " variables", kSource});
  return findings;
}

}  // namespace headrace::analysis::device
