// The rules of `advice`, and what they look at; each part of that is made when the first rule needs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/advice.h"
#include "headrace/analysis/device/device_idle.h"
#include "headrace/analysis/device/intervals.h"
#include "headrace/analysis/table.h"
#include "headrace/analysis/words.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

using analysis::percent;  // beside the one of two counts

inline constexpr const AdviceThresholds& kLimits = kAdviceThresholds;

/// A step of a rank, seconds.
struct StepParts {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  double computing = 0;
  double exposed = 0;
  double communication = 0;
  double free = 0;
  /// stage + bubble = computing + exposed + free
  double whole = 0;
  double preparing = 0;
  /// `device_idle`: nothing was launched yet, and what held the host up.
  double launch = 0;
  double held_up = 0;
};

class Evidence {
 public:
  Evidence(std::span<const trace::Trace> traces, std::span<const trace::ascend::ProfileFolder> profiles)
      : traces_(traces), profiles_(profiles) {}

  std::span<const trace::Trace> traces() const noexcept { return traces_; }
  std::span<const trace::ascend::ProfileFolder> profiles() const noexcept { return profiles_; }

  /// `step_time`, row by row, of steps with work.
  const std::vector<StepParts>& steps();
  /// `device_idle` of a trace that has work on a device, what holds its host up (held_up.h) counting as
  /// input.
  const DeviceIdle& idle(const trace::Trace& trace);
  /// Findings of earlier rules, which later ones leave out: seconds of a trace behind waits for the
  /// device, and whether late launches are named.
  std::map<const trace::Trace*, double> behind_waits;
  bool launches_are_late = false;

  /// True if a file has calls of CANN: the rules about its host apply.
  bool has_cann();
  /// True if a trace has work on a device.
  bool has_device() const noexcept;

  /// A table of the profiler, nullptr if no profile has it or it cannot be read; `why` says which.
  const Table* table(const std::string& name, std::string& why);
  /// Data of all profiles.
  const trace::ascend::Communication& communication();

  /// Entries of `profiler_metadata.json` or the database; nothing without them.
  const std::optional<std::map<std::string, std::string>>& environment();

  /// Numbers of cores of the device, if a file of the profile says.
  struct Cores {
    std::int64_t cube = 0;
    std::int64_t vector = 0;
  };
  const std::optional<Cores>& cores();

 private:
  std::span<const trace::Trace> traces_;
  std::span<const trace::ascend::ProfileFolder> profiles_;
  std::optional<std::vector<StepParts>> steps_;
  std::map<const trace::Trace*, DeviceIdle> idle_;
  std::optional<bool> has_cann_;
  struct Loaded {
    std::optional<Table> table;
    std::string why;
  };
  std::map<std::string, Loaded> tables_;
  std::optional<trace::ascend::Communication> communication_;
  bool environment_read_ = false;
  std::optional<std::map<std::string, std::string>> environment_;
  bool cores_read_ = false;
  std::optional<Cores> cores_;
};

/// A column of numbers whatever it holds; nothing if there is no such column or it holds texts.
std::optional<Numbers> numbers_of(const Table& table, std::string_view column);
/// A column of texts, nullptr if there is none.
const Texts* texts_of(const Table& table, std::string_view column);

enum class Severity : std::uint8_t { high, medium, low, none, not_checked };

struct Finding {
  Severity severity = Severity::none;
  std::string figures;
  std::string source;
  /// Share of time a change would win; of one severity the largest is shown first.
  double share = 0;
  /// Texts that depend on the finding; else those of the rule.
  std::string says = {};
  std::string cure = {};
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
  const char* none;       ///< says that there was nothing to find
  const char* says = "";  ///< what was found
  const char* cure = "";
};

/// "not checked: <why>".
Findings not_checked(std::string why, std::string source = {});
/// The finding, or that there is none, with its figures and source.
Findings found_if(bool is_found, Finding finding);

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
    check_sync_batch_norm, check_affinity_apis, check_core_frequency, check_small_packets,
    check_byte_alignment, check_bandwidth_contention, check_retransmission, check_slow_rank, check_slow_link,
    check_environment;

struct HostCall {
  trace::Row row = 0;
  Interval time;
};

/// Calls of the runtime that take memory of the device or of pinned pages, or give it back.
std::vector<HostCall> memory_calls(const trace::Trace& trace);

/// One-off costs: a call that takes a millisecond and is neither a wait, a copy nor a call for memory
/// (the first launch loads the kernel's module), the capture of a graph, a compilation.
std::vector<HostCall> one_offs(const trace::Trace& trace);

/// Waits for the input and for work that is older than the recording, calls that take memory or give it back,
/// and what costs much once; disjoint.
Intervals held_up(const trace::Trace& trace);

inline constexpr const char* kNoRatios =
    "kernel_details.csv has no ratios of pipelines (aic_metrics=PipeUtilization, Level1 and above)";

/// Kernels of some types, the seconds of each type and of all.
struct TypeSums {
  struct Sum {
    std::int64_t count = 0;
    double seconds = 0;
    std::int64_t misfits = 0;
  };
  std::map<std::string, Sum, std::less<>> types;
  double seconds = 0;
  double longest_s = 0;

  Sum& add(std::string_view type, double duration_s);
  std::string count_text() const { return std::to_string(types.size()) + " types of operators"; }
  /// "Cast 3 x, 120 us in all, Index 1 x, 12 us in all": five of them, the longest in total first.
  std::string listed() const;
};

class Kernels {
 public:
  /// Nothing, with the reason in `why`, if no profile has the table or it lacks a column that every rule
  /// needs.
  static std::optional<Kernels> of(Evidence& evidence, std::string& why);

  std::size_t rows() const noexcept { return durations_s.size(); }
  std::string_view type(std::size_t row) const { return (*types)[row]; }
  std::string_view core(std::size_t row) const { return (*cores)[row]; }
  bool is_communication(std::size_t row) const { return core(row) == "HCCL" || core(row) == "COMMUNICATION"; }
  /// The column, NaN in every row if the table has none.
  Numbers numbers(const char* column) const;
  /// Calls `use` with each row that has a duration.
  template <class Use>
  void each(Use use) const {
    for (std::size_t row = 0; row < rows(); ++row) {
      if (durations_s[row] - durations_s[row] == 0) use(row);  // finite
    }
  }
  template <class Wanted>
  TypeSums where(Wanted wanted) const {
    TypeSums sums;
    each([&](std::size_t row) {
      if (wanted(row)) sums.add(type(row), durations_s[row]);
    });
    return sums;
  }
  double share_of_computing(double seconds) const noexcept {
    return seconds / (computing_s > 1e-12 ? computing_s : 1e-12);
  }

  const Table* table = nullptr;
  const Texts* types = nullptr;
  const Texts* cores = nullptr;
  Numbers durations_s;
  double computing_s = 0;  ///< of all kernels that compute
};

/// A rule about kernels, as a rule: what it finds, or why there are none to check.
using KernelCheck = Findings(Evidence& evidence, const Kernels& kernels);
template <KernelCheck* kCheck>
Findings of_kernels(Evidence& evidence) {
  std::string why;
  const std::optional<Kernels> kernels = Kernels::of(evidence, why);
  return kernels ? kCheck(evidence, *kernels) : not_checked(why);
}

KernelCheck check_fusible_operators, check_aicpu, check_dynamic_shapes, check_block_dim,
    check_unbound_operators, check_core_performance;

}  // namespace headrace::analysis::device
