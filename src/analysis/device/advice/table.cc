// The rules, in the order in which they are shown within one severity.
#include <algorithm>
#include <array>
#include <utility>

#include "analysis/device/advice/rule.h"
#include "headrace/analysis/device/advice.h"

namespace headrace::analysis::device {
namespace {

constexpr std::array kRules = {
    // Of any trace.
    Rule{"free_time", &check_free_time},
    Rule{"exposed_communication", &check_exposed_communication},
    Rule{"data_loading", &check_data_loading},
    Rule{"preparing", &check_preparing},
    Rule{"launch_bound", &check_launch_bound},
    Rule{"synchronisation", &check_synchronisation},
    Rule{"garbage_collection", &check_garbage_collection},
    // The host of an Ascend device.
    Rule{"operator_compilation", &check_operator_compilation},
    Rule{"synchronised_launches", &check_synchronised_launches},
    Rule{"memory_calls", &check_memory_calls},
    Rule{"sync_batch_norm", &check_sync_batch_norm},
    Rule{"affinity_apis", &check_affinity_apis},
    // Kernels.
    Rule{"fusible_operators", &check_fusible_operators},
    Rule{"aicpu_operators", &check_aicpu},
    Rule{"dynamic_shapes", &check_dynamic_shapes},
    Rule{"block_dim", &check_block_dim},
    Rule{"unbound_operators", &check_unbound_operators},
    Rule{"core_performance", &check_core_performance},
    Rule{"core_frequency", &check_core_frequency},
    // Communication.
    Rule{"small_packets", &check_small_packets},
    Rule{"byte_alignment", &check_byte_alignment},
    Rule{"bandwidth_contention", &check_bandwidth_contention},
    Rule{"retransmission", &check_retransmission},
    // Ranks, and the run.
    Rule{"slow_rank", &check_slow_rank},
    Rule{"slow_link", &check_slow_link},
    Rule{"environment_variables", &check_environment},
};

}  // namespace

Findings not_checked(std::string why, std::string source) {
  return {{Severity::not_checked, "not checked: " + std::move(why), "", "", std::move(source)}};
}

Findings nothing_found(std::string says, std::string figures, std::string source) {
  return {{Severity::none, std::move(says), std::move(figures), "", std::move(source)}};
}

std::string rank_text(std::int64_t rank) { return rank < 0 ? "a rank" : "rank " + std::to_string(rank); }

Severity severity_of_share(double share) noexcept {
  if (share >= 0.05) return Severity::high;
  return share >= 0.03 ? Severity::medium : Severity::low;
}

Table advice(std::span<const trace::Trace> traces, std::span<const trace::ascend::ProfileFolder> profiles) {
  Evidence evidence(traces, profiles);
  std::vector<std::pair<const char*, Finding>> all;
  for (const Rule& rule : kRules) {
    for (Finding& finding : rule.check(evidence)) all.emplace_back(rule.name, std::move(finding));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second.severity < b.second.severity; });
  Rows<AdviceColumns> rows;
  for (const auto& [rule, finding] : all)
    rows.add(rule, kSeverities[static_cast<std::size_t>(finding.severity)], finding.says, finding.figures,
             finding.cure, finding.source);
  return rows.take();
}

}  // namespace headrace::analysis::device
