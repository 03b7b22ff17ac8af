// Simulated step times of a training job without an imbalance, a rank, a stage or a kind of operation.
//
//     const JobSimulation job(operations);
//     const auto now = job.step_s(Selection::all());
//     const auto even = job.step_s(Selection::none());
//     const auto only_stage_3 = job.step_s({.stage = 3});
//
// Method: Understanding Stragglers in Large Model Training Using What-if Analysis (OSDI 2025).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/job/operations.h"

namespace headrace::analysis::job {

/// Operations that meet every condition; with `others`, those that do not.
struct Selection {
  std::optional<std::int32_t> dp_rank = std::nullopt;
  std::optional<std::int32_t> stage = std::nullopt;
  /// As kind_of() names them.
  std::optional<std::string> kind = std::nullopt;
  /// Empty: of any worker. Data-parallel rank and stage of each.
  std::vector<std::pair<std::int32_t, std::int32_t>> workers = {};
  bool others = false;

  static Selection all() { return {}; }
  static Selection none() {
    Selection selection;
    selection.others = true;
    return selection;
  }
  bool contains(const Operation& operation) const;
};

/// Delays between operations: the start of one less the latest end of those that it depends on.
enum class Delays : std::uint8_t {
  none,
  recorded,
  without_input,  ///< less `Operation::input_s`
};

/// Immutable, so any thread may ask.
class JobSimulation {
 public:
  /// Copies the operations. UsageError if there are none, if a time is not finite, or if the dependencies of a
  /// step form a cycle; it says which step.
  explicit JobSimulation(Operations operations);

  /// In order: the steps, data-parallel ranks and stages that occur, and the kinds (as kind_of names them).
  const std::vector<std::int64_t>& steps() const noexcept { return steps_; }
  const std::vector<std::int32_t>& dp_ranks() const noexcept { return dp_ranks_; }
  const std::vector<std::int32_t>& stages() const noexcept { return stages_; }
  const std::vector<std::string>& kinds() const noexcept { return kinds_; }

  /// Sends and receives whose partner was not recorded. They cost nothing, like those that the ends of the
  /// pipeline record but never launch.
  std::size_t unpaired() const noexcept { return unpaired_; }

  /// As recorded, seconds a step: last end less first start, waits for the input before it included.
  std::vector<double> recorded_s() const;

  /// Simulated, seconds a step. An operation begins when all that it depends on has ended, and after its delay.
  /// Those in `kept` take as long as recorded, all others the ideal time of their type: the mean over ranks,
  /// stages and steps of what is computed, the median of what is communicated. For communication this is the time
  /// from the start of the group's last member; members that begin earlier wait.
  std::vector<double> step_s(const Selection& kept, Delays delays = Delays::none) const;

 private:
  struct Step {
    std::vector<std::uint32_t> members;    ///< operations, group by group, in an order that can be simulated
    std::vector<std::uint32_t> group_end;  ///< into members
    std::vector<std::uint32_t> needs;      ///< operations that must have ended, member by member
    std::vector<std::uint32_t> needs_end;  ///< into needs, one a member
  };

  Step arrange(const std::vector<std::uint32_t>& members);
  void measure(const Step& step);
  void find_ideal();
  double delay_s(std::uint32_t operation, Delays delays) const;

  Operations operations_;
  std::vector<double> own_s_;    ///< without the wait for a group, by operation
  std::vector<double> delay_s_;  ///< recorded launch delay, by operation
  std::vector<bool> in_batch_;   ///< transfers that share a kernel with another, by operation
  std::array<double, kOperationTypes> ideal_s_{};
  std::vector<Step> arranged_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int32_t> dp_ranks_;
  std::vector<std::int32_t> stages_;
  std::vector<std::string> kinds_;
  std::size_t unpaired_ = 0;
};

}  // namespace headrace::analysis::job
