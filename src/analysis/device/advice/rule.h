// One rule of `advice`: looks at the evidence and says what it found, or why it could not look.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/device/advice/evidence.h"
#include "headrace/analysis/device/advice_thresholds.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis::device {

using analysis::percent;  // beside the one of two counts

inline constexpr const AdviceThresholds& kLimits = kAdviceThresholds;

enum class Severity : std::uint8_t { high, medium, low, none, not_checked };

struct Finding {
  Severity severity = Severity::none;
  std::string says;
  std::string figures;
  std::string cure;
  std::string source;
};

/// At least one finding: "none" tells what was looked at.
using Findings = std::vector<Finding>;

struct Rule {
  const char* name;
  /// Says nothing about a run on another device.
  bool of_ascend;
  Findings (*check)(Evidence& evidence);
};

/// "not checked: <why>".
Findings not_checked(std::string why, std::string source = {});
Findings nothing_found(std::string says, std::string figures, std::string source);

/// "rank 3".
std::string rank_text(std::int64_t rank);
/// `kSeverities`'s word by the share of the time that a change would win: 5 % high, 3 % medium (the Ascend
/// advisor's priorities).
Severity severity_of_share(double share) noexcept;

// Rules, by the file that has them.
Findings check_free_time(Evidence& evidence);
Findings check_exposed_communication(Evidence& evidence);
Findings check_preparing(Evidence& evidence);
Findings check_data_loading(Evidence& evidence);
Findings check_exposed_copies(Evidence& evidence);
Findings check_allocation_calls(Evidence& evidence);
Findings check_launch_bound(Evidence& evidence);
Findings check_synchronisation(Evidence& evidence);
Findings check_garbage_collection(Evidence& evidence);
Findings check_operator_compilation(Evidence& evidence);
Findings check_synchronised_launches(Evidence& evidence);
Findings check_memory_calls(Evidence& evidence);
Findings check_sync_batch_norm(Evidence& evidence);
Findings check_affinity_apis(Evidence& evidence);
Findings check_fusible_operators(Evidence& evidence);
Findings check_aicpu(Evidence& evidence);
Findings check_dynamic_shapes(Evidence& evidence);
Findings check_block_dim(Evidence& evidence);
Findings check_unbound_operators(Evidence& evidence);
Findings check_core_performance(Evidence& evidence);
Findings check_core_frequency(Evidence& evidence);
Findings check_small_packets(Evidence& evidence);
Findings check_byte_alignment(Evidence& evidence);
Findings check_bandwidth_contention(Evidence& evidence);
Findings check_retransmission(Evidence& evidence);
Findings check_slow_rank(Evidence& evidence);
Findings check_slow_link(Evidence& evidence);
Findings check_environment(Evidence& evidence);

}  // namespace headrace::analysis::device
