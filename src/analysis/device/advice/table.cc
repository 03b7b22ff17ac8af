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
    Rule{"data_loading", false, &check_data_loading},
    Rule{"exposed_communication", false, &check_exposed_communication},
    Rule{"exposed_copies", false, &check_exposed_copies},
    Rule{"one_off_calls", false, &check_one_off_calls},
    Rule{"allocation_calls", false, &check_allocation_calls},
    Rule{"garbage_collection", false, &check_garbage_collection},
    // Each of these leaves out what those before it explain.
    Rule{"synchronisation", false, &check_synchronisation},
    Rule{"launch_bound", false, &check_launch_bound},
    Rule{"preparing", false, &check_preparing},
    Rule{"free_time", false, &check_free_time},
    // The host of an Ascend device.
    Rule{"operator_compilation", true, &check_operator_compilation},
    Rule{"synchronised_launches", true, &check_synchronised_launches},
    Rule{"memory_calls", true, &check_memory_calls},
    Rule{"sync_batch_norm", false, &check_sync_batch_norm},
    Rule{"affinity_apis", true, &check_affinity_apis},
    // Kernels.
    Rule{"fusible_operators", false, &check_fusible_operators},
    Rule{"aicpu_operators", true, &check_aicpu},
    Rule{"dynamic_shapes", true, &check_dynamic_shapes},
    Rule{"block_dim", true, &check_block_dim},
    Rule{"unbound_operators", true, &check_unbound_operators},
    Rule{"core_performance", true, &check_core_performance},
    Rule{"core_frequency", true, &check_core_frequency},
    // Communication.
    Rule{"small_packets", true, &check_small_packets},
    Rule{"byte_alignment", true, &check_byte_alignment},
    Rule{"bandwidth_contention", true, &check_bandwidth_contention},
    Rule{"retransmission", true, &check_retransmission},
    // Ranks, and the run.
    Rule{"slow_rank", false, &check_slow_rank},
    Rule{"slow_link", false, &check_slow_link},
    Rule{"environment_variables", true, &check_environment},
};

}  // namespace

Findings not_checked(std::string why, std::string source) {
  return {{Severity::not_checked, "not checked: " + std::move(why), "", "", std::move(source)}};
}

Findings nothing_found(std::string says, std::string figures, std::string source) {
  return {{Severity::none, std::move(says), std::move(figures), "", std::move(source)}};
}

Findings found_if(bool is_found, const char* none, Finding finding) {
  if (!is_found) return nothing_found(none, std::move(finding.figures), std::move(finding.source));
  return {std::move(finding)};
}

void keep_worst(RankShare& worst, const RankShare& rank) {
  if (rank.whole > 0 && (worst.rank < 0 || rank.share() > worst.share())) worst = rank;
}

RankShare idle_share(Evidence& evidence, const trace::Trace& trace, const char* column) {
  RankShare rank{&trace, trace.rank};
  if (trace.device_rows.empty()) return rank;
  const Table& steps = evidence.idle(trace).steps;
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    rank.part += steps.numbers(column)[row];
    rank.whole += steps.numbers("window_s")[row];
  }
  return rank;
}

std::string figures_of(const RankShare& worst, const char* what, const char* of) {
  return rank_text(worst.rank) + ": " + what + " " + duration(worst.part) + " of " + duration(worst.whole) +
         of + ", " + percent(worst.share());
}

std::string rank_text(std::int64_t rank) { return rank < 0 ? "a rank" : "rank " + std::to_string(rank); }

Severity severity_of_share(double share) noexcept {
  if (share >= 0.05) return Severity::high;
  return share >= 0.03 ? Severity::medium : Severity::low;
}

Table advice(std::span<const trace::Trace> traces, std::span<const trace::ascend::ProfileFolder> profiles) {
  Evidence evidence(traces, profiles);
  std::vector<std::pair<const char*, Finding>> all;
  const bool of_ascend = evidence.has_cann() || !profiles.empty();
  for (const Rule& rule : kRules) {
    if (rule.of_ascend && !of_ascend) continue;
    for (Finding& finding : rule.check(evidence)) all.emplace_back(rule.name, std::move(finding));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.severity, -a.second.share) < std::pair(b.second.severity, -b.second.share);
  });
  Rows<AdviceColumns> rows;
  for (const auto& [rule, finding] : all)
    rows.add(rule, kSeverities[static_cast<std::size_t>(finding.severity)], finding.says, finding.figures,
             finding.cure, finding.source);
  return rows.take();
}

}  // namespace headrace::analysis::device
