// A verdict on one profile, as plain data. Same names in C++, Python and JSON (`op` is "operator" there).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/model/change.h"
#include "headrace/analysis/read/evidence.h"
#include "headrace/profile/loader_model.h"

namespace headrace::analysis {

using profile::ParameterValue;

enum class VerdictKind : std::uint8_t {
  undetermined,
  not_input_bound,
  input_bound,
  intermittent,  ///< input-bound in a part of the run
};
/// In the order in which they are tried (causes/table.cc); docs/verdicts.md explains each.
enum class Cause : std::uint8_t {
  startup,
  transient_stall,
  pauses,
  alternating,
  slow_worker,
  slow_rank,
  memory_pressure,
  remote_storage,
  storage_bound,
  shared_resource,
  gc_pause,
  slow_samples,
  gil_contention,
  oversubscribed,
  pinned,
  cpu_saturated,
  shard_imbalance,
  handoff,
  transfer,
  variance,
  no_overlap,
  serial_operator,
  too_few_workers,
};

constexpr std::array<std::string_view, 4> names_of(VerdictKind) noexcept {
  return {"undetermined", "not_input_bound", "input_bound", "intermittent"};
}
constexpr std::array<std::string_view, 23> names_of(Cause) noexcept {
  return {"startup",       "transient_stall", "pauses",         "alternating",    "slow_worker",
          "slow_rank",     "memory_pressure", "remote_storage", "storage_bound",  "shared_resource",
          "gc_pause",      "slow_samples",    "gil_contention", "oversubscribed", "pinned",
          "cpu_saturated", "shard_imbalance", "handoff",        "transfer",       "variance",
          "no_overlap",    "serial_operator", "too_few_workers"};
}

/// The training loop waits for its input, all of the time or some of it.
constexpr bool is_bound(VerdictKind kind) noexcept {
  return kind == VerdictKind::input_bound || kind == VerdictKind::intermittent;
}

/// One change. Best first in Diagnosis::advice.
struct Advice {
  std::string parameter;  ///< "" for a cure that is not a parameter (see text)
  ParameterValue from;    ///< value now; empty if the cure is not a parameter
  ParameterValue to;
  std::string text;
  std::string code;  ///< lines that make the change, where the loader has no such parameter; "" otherwise
  std::optional<double> predicted_step_s;
  std::optional<double> low;  ///< interval of predicted_step_s, seconds
  std::optional<double> high;
  std::optional<double> speedup;       ///< step now / predicted step
  std::optional<double> memory_bytes;  ///< more batches in memory take so much more, at most
  /// Earlier advice that the prediction takes as followed ("decode.workers=3"); empty: this change alone.
  std::vector<std::string> after;
  std::string then_limit;       ///< what limits then: an operator's name, "sink" or "cpu"; not in JSON
  std::vector<Change> changes;  ///< what was simulated, `after` included; not in JSON
};

/// Kinds of risks, in the order in which reports list them.
enum class RiskKind : std::uint8_t { shared_memory, memory_growth, stuck_worker, startup, gc_pause };
constexpr std::array<std::string_view, 5> names_of(RiskKind) noexcept {
  return {"shared_memory", "memory_growth", "stuck_worker", "startup", "gc_pause"};
}

struct Risk {
  RiskKind kind = RiskKind::shared_memory;
  std::string says;
  std::map<std::string, double> figures;  ///< units in the names
  std::string cure;
};

/// Operator that the queues' levels name on their own: high left of it, low right of it.
struct QueueRule {
  std::optional<std::string> op;  ///< empty: they name none
  std::optional<double> left;     ///< level of the queue before it, 0 to 1; empty: there is none
  std::optional<double> right;    ///< of the queue behind it
  bool agrees = true;             ///< with the verdict
  std::string says;               ///< the levels, and where it does not agree, why
};

struct VerdictWindow {
  double start_s = 0;
  double end_s = 0;
  VerdictKind kind = VerdictKind::undetermined;
  std::optional<std::string> op;
};

struct Diagnosis {
  VerdictKind kind = VerdictKind::undetermined;
  std::optional<std::string> op;
  std::optional<Cause> cause;
  double confidence = 0;     ///< 0 to 1
  double share_of_step = 0;  ///< what the bottleneck costs: (wait charged to it + stretched compute) / step
  std::string reason;        ///< what is missing, where kind is undetermined
  std::string summary;       ///< one plain sentence: the headline of a report
  std::optional<double> headroom_step_s;  ///< healthy runs: the step time that the input could still feed
  std::vector<Evidence> evidence;
  std::optional<QueueRule> queue_rule;  ///< empty: the profile has no queues, or no verdict
  std::vector<Advice> advice;
  std::optional<std::string> next_bottleneck;  ///< an operator's name, or "sink"
  std::vector<Risk> risks;                     ///< beside the verdict
  std::vector<VerdictWindow> windows;          ///< where the verdict differs from the whole
};

}  // namespace headrace::analysis
