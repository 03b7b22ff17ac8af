// Sequences of operators for which the device has one operator of its own.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/rule.h"

namespace headrace::analysis::device {
namespace {

using trace::EventKind;
using trace::Row;

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
  if (found.empty())
    return nothing_found("no operators that the device has in one piece",
                         std::to_string(operators) + " operators", source);
  std::string figures;
  std::string cure = "call ";
  for (const auto& [instead, count] : found) {
    figures += (figures.empty() ? "" : ", ") + std::to_string(count) + " x " + instead;
    cure += (cure == "call " ? "" : ", ") + instead;
  }
  return {{Severity::low, "the device has single operators for sequences that the model runs piece by piece",
           figures, cure + " instead, where shapes and types allow it", source}};
}

}  // namespace headrace::analysis::device
