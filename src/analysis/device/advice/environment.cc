// Environment variables of the run that cost time.
#include <charconv>
#include <string>

#include "analysis/device/advice/rule.h"

namespace headrace::analysis::device {
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
    findings.push_back({severity, says, std::string(name) + "=\"" + at->second + "\"", cure, kSource});
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
  if (!findings.empty()) return findings;
  return nothing_found("no environment variable costs time", std::to_string(variables->size()) + " variables",
                       kSource);
}

}  // namespace headrace::analysis::device
