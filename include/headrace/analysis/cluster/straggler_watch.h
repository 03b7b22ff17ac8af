// Rank of a running job that holds the others up now, from the ranks' totals over time.
//
//     StragglerWatch watch;
//     every second: watch.look(now_s, totals_of_all_ranks);
//     if (const auto found = watch.straggler()) std::cout << found->rank;
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/analysis/cluster/slow_ranks.h"
#include "headrace/profile/loop_totals.h"

namespace headrace::analysis::cluster {

/// Time that is longer on the rank than on the others.
enum class LateBy : std::uint8_t { input, computation, step };

constexpr std::array<std::string_view, 3> names_of(LateBy) noexcept {
  return {"input", "computation", "step"};
}

struct Straggler {
  std::int64_t rank = 0;
  /// More often the slowest than chance explains (`slowest_z`); else a one-off, so far.
  bool chronic = false;
  double z = 0;
  std::size_t slowest = 0;  ///< blocks in which it was the slowest, beyond noise
  std::size_t blocks = 0;   ///< of so many
  double late_s = 0;        ///< a step: of a chronic one the median of the blocks, else the mean
  double late_share = 0;    ///< the same as a share of the job's step
  LateBy by = LateBy::step;
};

/// The last 24 seconds, or as many blocks as it takes to be sure, are judged by `slow_ranks`, in blocks of a
/// second, or of a step where steps are longer: a pause is one block, however many steps were lost in it. A
/// straggler is chronic by `slowest_z`, late by 5 % of the step or more in half of the blocks, and later than
/// any rank was in the minutes before.
///
/// Ranks that meet in every step are compared by their waits for the input, and then by these and the CPU time of the
/// loop's thread, unless they use an asynchronous device: a rank that works all the time while the others wait comes
/// last. (That a device is slow shows in device traces only.) Other ranks are compared by their steps. Ranks that
/// ended, or have no new step for a minute, are left out. Not thread-safe.
class StragglerWatch {
 public:
  /// `ranks`: the totals of one loader on each rank. Looks at distances of a second or less use all blocks there can
  /// be. `now_s`: the reader's clock.
  void look(double now_s, std::span<const profile::LoopTotals> ranks);

  /// A one-off is reported if it cost the job a second or more. Empty: no rank is late, or there was too little to
  /// see.
  const std::optional<Straggler>& straggler() const noexcept { return found_; }

 private:
  /// Means over the steps of one rank in one block.
  struct RankBlock {
    double step_s = 0;
    double wait_s = 0;
    double cpu_s = -1;  ///< of the loop's thread; -1: not known
    double steps = 0;
  };
  struct Block {
    std::int64_t number = 0;
    double at_s = 0;
    std::map<int, RankBlock> ranks;
  };
  /// How late the latest rank was in windows without a straggler, as a share of the step.
  struct Usual {
    std::deque<double> shares;
    double began_s = 0;     ///< of the window that goes on
    double most_share = 0;  ///< in it, so far

    double most() const noexcept;
    void add(double at_s, double share);
    void drop_pending();
  };
  enum class Own : std::uint8_t { wait, wait_and_cpu, step };

  std::vector<RankSteps> columns(Own own) const;
  /// By the means over all steps: a long step may fall into different blocks of two ranks.
  bool ranks_meet() const;
  void judge();
  std::vector<double> lateness_of(const std::vector<RankSteps>& ranks) const;
  std::optional<Straggler> slow_in(const std::vector<RankSteps>& ranks, LateBy by);
  std::optional<Straggler> one_off_in(const std::vector<RankSteps>& ranks, LateBy by) const;

  std::map<int, profile::LoopTotals> before_;  ///< by rank: where the block began
  std::set<int> absent_;                       ///< had no step in the last block
  double began_s_ = 0;
  std::int64_t number_ = 0;
  std::deque<Block> blocks_;
  std::array<Usual, 3> usual_;  ///< by LateBy
  std::optional<Straggler> found_;
};

}  // namespace headrace::analysis::cluster
