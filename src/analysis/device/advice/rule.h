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
  /// Of the time, what a change would win; of one severity the largest is shown first.
  double share = 0;
};

/// At least one finding: "none" tells what was looked at.
using Findings = std::vector<Finding>;

/// A rule. Those of all files are declared below.
using Check = Findings(Evidence& evidence);

struct Rule {
  const char* name;
  /// Says nothing about a run on another device.
  bool of_ascend;
  Check* check;
};

/// "not checked: <why>".
Findings not_checked(std::string why, std::string source = {});
Findings nothing_found(std::string says, std::string figures, std::string source);
/// The finding, or `none` with its figures and source.
Findings found_if(bool is_found, const char* none, Finding finding);

/// A part of the time of one rank, seconds.
struct RankShare {
  const trace::Trace* trace = nullptr;
  std::int64_t rank = -1;
  double part = 0;
  double whole = 0;
  double share() const noexcept { return whole > 0 ? part / whole : 0; }
};
void keep_worst(RankShare& worst, const RankShare& rank);
/// A column of `device_idle`, of all of its windows.
RankShare idle_share(Evidence& evidence, const trace::Trace& trace, const char* column);
/// "rank 3: only copying for 2 ms of 8 ms, 25 %".
std::string figures_of(const RankShare& worst, const char* what, const char* of = "");

/// "rank 3".
std::string rank_text(std::int64_t rank);
/// `kSeverities`'s word by the share of the time that a change would win: 5 % high, 3 % medium (the Ascend
/// advisor's priorities).
Severity severity_of_share(double share) noexcept;

Check check_free_time, check_exposed_communication, check_preparing, check_data_loading, check_exposed_copies,
    check_allocation_calls, check_one_off_calls, check_launch_bound, check_synchronisation,
    check_garbage_collection, check_operator_compilation, check_synchronised_launches, check_memory_calls,
    check_sync_batch_norm, check_affinity_apis, check_fusible_operators, check_aicpu, check_dynamic_shapes,
    check_block_dim, check_unbound_operators, check_core_performance, check_core_frequency,
    check_small_packets, check_byte_alignment, check_bandwidth_contention, check_retransmission,
    check_slow_rank, check_slow_link, check_environment;

}  // namespace headrace::analysis::device
