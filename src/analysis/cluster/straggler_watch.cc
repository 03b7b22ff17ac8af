#include "headrace/analysis/cluster/straggler_watch.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "headrace/analysis/cluster/slowest_chance.h"
#include "step_matrix.h"

namespace headrace::analysis::cluster {
namespace {

constexpr double kBlock_s = 1;
constexpr double kJudged_s = 24;
/// A rank without a step for so long does not hold up the blocks of the others.
constexpr double kMaxBlock_s = 60;
/// Share of its step in which a rank waits for its input or computes on a core, if it is what holds the job up: in
/// some steps another rank is later by chance.
constexpr double kSeldomWaits = 0.7;
/// Cost from which a one-off is reported.
constexpr double kLost_s = 1;

/// A rank is late if it is later, by this factor, than any was in the minutes before: some loops have spells.
constexpr double kUnusual = 1.5;
/// How late that is, as a share of the step, while it is not known.
constexpr double kUsual = 0.07;
constexpr std::size_t kUsualWindows = 20;
/// The newest windows may be those in which a rank has just become late.
constexpr std::size_t kPendingWindows = 5;

/// Fewer blocks cannot tell a chronic rank, even one that is the slowest in all of them but one. Long steps are judged
/// over a longer time for that.
std::size_t fewest_blocks(std::size_t ranks) {
  if (ranks < 2) return 0;
  std::size_t blocks = SlowRankThresholds{}.fewest_steps;
  while (slowest_z(blocks - 1, blocks, ranks) < chronic_z(ranks)) ++blocks;
  return blocks;
}

}  // namespace

double StragglerWatch::Usual::most() const noexcept {
  if (shares.size() <= kPendingWindows) return kUsual;
  return *std::max_element(shares.begin(), shares.end() - kPendingWindows);
}

void StragglerWatch::Usual::add(double at_s, double share) {
  most_share = std::max(most_share, share);
  if (began_s == 0) began_s = at_s;
  if (at_s - began_s < kJudged_s) return;
  shares.push_back(most_share);
  if (shares.size() > kUsualWindows) shares.pop_front();
  began_s = at_s;
  most_share = 0;
}

void StragglerWatch::Usual::drop_pending() {
  shares.resize(shares.size() - std::min(shares.size(), kPendingWindows));
  began_s = most_share = 0;
}

void StragglerWatch::look(double now_s, std::span<const profile::LoopTotals> ranks) {
  Block block{number_, now_s, {}};
  bool all_stepped = true;
  for (const profile::LoopTotals& now : ranks) {
    if (now.ended || now.died) {
      before_.erase(now.rank);
      continue;
    }
    const auto [at, is_new] = before_.try_emplace(now.rank, now);
    profile::LoopTotals& before = at->second;
    if (is_new || now.step_times.count < before.step_times.count) {
      before = now;  // a rank that came later, or began again
      continue;
    }
    const auto steps = static_cast<double>(now.step_times.count - before.step_times.count);
    const auto waits = static_cast<double>(now.waits.count - before.waits.count);
    if (steps < 1 || waits < 1) {
      all_stepped = all_stepped && absent_.contains(now.rank);
      continue;
    }
    RankBlock& its = block.ranks[now.rank];
    its.steps = steps;
    its.step_s = (now.step_times.sum_s - before.step_times.sum_s) / steps;
    // Includes the unfinished step, so it may exceed the steps.
    its.wait_s = (now.waits.sum_s - before.waits.sum_s) / waits;
    const double sampled_s = now.sampled_compute_s - before.sampled_compute_s;
    // CPU work beside an asynchronous device holds nobody up.
    if (sampled_s > 0 && now.device_steps == 0)
      its.cpu_s =
          std::max(0.0, its.step_s - its.wait_s) * (now.sampled_cpu_s - before.sampled_cpu_s) / sampled_s;
  }
  if (began_s_ == 0) began_s_ = now_s;
  const double lasted_s = now_s - began_s_;
  if (lasted_s < kBlock_s || (!all_stepped && lasted_s < kMaxBlock_s)) return;
  began_s_ = now_s;
  absent_.clear();
  for (const profile::LoopTotals& now : ranks) {
    if (now.ended || now.died) continue;
    before_[now.rank] = now;
    if (!block.ranks.contains(now.rank)) absent_.insert(now.rank);
  }
  ++number_;
  if (block.ranks.size() > 1) blocks_.push_back(std::move(block));
  const std::size_t fewest = fewest_blocks(before_.size());
  while (blocks_.size() > fewest && blocks_.front().at_s <= now_s - kJudged_s) blocks_.pop_front();
  judge();
}

std::vector<RankSteps> StragglerWatch::columns(Own own) const {
  std::map<int, RankSteps> found;
  for (const Block& block : blocks_) {
    for (const auto& [rank, its] : block.ranks) {
      if (own == Own::wait_and_cpu && its.cpu_s < 0) continue;
      RankSteps& column = found[rank];
      column.rank = rank;
      column.step.push_back(block.number);
      column.total_s.push_back(its.step_s);
      column.own_s.push_back(own == Own::step   ? its.step_s
                             : own == Own::wait ? its.wait_s
                                                : its.wait_s + its.cpu_s);
    }
  }
  std::vector<RankSteps> columns;
  for (auto& [rank, column] : found) columns.push_back(std::move(column));
  return columns;
}

bool StragglerWatch::ranks_meet() const {
  std::map<int, RankBlock> sums;
  for (const Block& block : blocks_) {
    for (const auto& [rank, its] : block.ranks) {
      sums[rank].steps += its.steps;
      sums[rank].step_s += its.steps * its.step_s;
    }
  }
  std::vector<RankSteps> means;
  for (const auto& [rank, sum] : sums) means.push_back({rank, {0}, {sum.step_s / sum.steps}, {0}, 0});
  return in_step(means);
}

void StragglerWatch::judge() {
  found_.reset();
  if (blocks_.empty()) return;
  std::vector<RankSteps> ranks = columns(Own::wait);
  if (!ranks_meet()) {
    ranks = columns(Own::step);
    found_ = slow_in(ranks, LateBy::step);
    if (!found_) found_ = one_off_in(ranks, LateBy::step);
    return;
  }
  found_ = slow_in(ranks, LateBy::input);
  if (!found_) found_ = slow_in(columns(Own::wait_and_cpu), LateBy::computation);
  if (!found_) found_ = one_off_in(ranks, LateBy::input);
}

std::vector<double> StragglerWatch::lateness_of(const std::vector<RankSteps>& ranks) const {
  std::vector<std::int64_t> numbers;
  for (const Block& block : blocks_) numbers.push_back(block.number);
  return lateness(ranks, numbers);
}

std::optional<Straggler> StragglerWatch::slow_in(const std::vector<RankSteps>& ranks, LateBy by) {
  const SlowRankThresholds thresholds;
  const SlowRanks judged = slow_ranks(ranks);
  if (judged.step_s <= 0) return std::nullopt;
  const std::vector<double> late_s = lateness_of(ranks);
  Usual& usual = usual_[static_cast<std::size_t>(by)];
  std::optional<Straggler> found;
  double most_share = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto row = std::span(late_s).subspan(rank * blocks_.size(), blocks_.size());
    std::vector<double> known;
    std::copy_if(row.begin(), row.end(), std::back_inserter(known),
                 [](double each) { return !std::isnan(each); });
    const double share = known.empty() ? 0 : lower_median(known) / judged.step_s;
    most_share = std::max(most_share, share);
    if (share < std::max(thresholds.least_late, kUnusual * usual.most())) continue;
    const auto slow = std::find_if(judged.slow.begin(), judged.slow.end(),
                                   [&](const SlowRank& each) { return each.rank == ranks[rank].rank; });
    if (slow == judged.slow.end() || slow->z < chronic_z(ranks.size())) continue;
    const RankLateness& means = judged.ranks[rank];
    if (by == LateBy::computation && means.own_s < kSeldomWaits * means.step_s) continue;
    if (found && found->late_share > share) continue;
    found =
        Straggler{slow->rank, true, slow->z, slow->slowest, slow->judged, share * judged.step_s, share, by};
  }
  if (found) {
    usual.drop_pending();
  } else {
    usual.add(blocks_.back().at_s, most_share);
  }
  return found;
}

std::optional<Straggler> StragglerWatch::one_off_in(const std::vector<RankSteps>& ranks, LateBy by) const {
  const SlowRankThresholds thresholds;
  const std::vector<double> late_s = lateness_of(ranks);
  std::optional<Straggler> worst;
  double most_lost_s = kLost_s;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    Straggler one{ranks[rank].rank, false, 0, 0, blocks_.size(), 0, 0, by};
    double lost_s = 0, steps = 0, lasted_s = 0;
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      const double late = late_s[rank * blocks_.size() + block];
      const auto its = blocks_[block].ranks.find(static_cast<int>(one.rank));
      if (its == blocks_[block].ranks.end() || std::isnan(late)) continue;
      steps += its->second.steps;
      lasted_s += its->second.steps * its->second.step_s;
      if (late < thresholds.least_late * its->second.step_s) continue;
      ++one.slowest;
      lost_s += late * its->second.steps;
    }
    if (lost_s < std::max(most_lost_s, thresholds.least_late * lasted_s)) continue;
    most_lost_s = lost_s;
    one.z = slowest_z(one.slowest, one.blocks, ranks.size());
    one.late_s = lost_s / steps;
    one.late_share = lost_s / lasted_s;
    worst = one;
  }
  return worst;
}

}  // namespace headrace::analysis::cluster
