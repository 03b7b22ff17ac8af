#include "headrace/analysis/cluster/slow_ranks.h"

#include <cmath>
#include <numeric>

#include "headrace/analysis/cluster/slowest_chance.h"
#include "step_matrix.h"

namespace headrace::analysis::cluster {
namespace {

/// Slow ranks whose gain is computed one by one.
/// Mean steps of ranks that meet in every step differ by less, as a share.
constexpr double kInStep = 0.05;
constexpr std::size_t kMaxPasses = 16;

/// The last steps are judged alone if there are so many of them.
constexpr std::size_t kFewestRecent = 10;

/// Pauses are those of one rank if it has this share of the late steps.
constexpr double kOfOneRank = 0.8;

struct Moments {
  std::size_t count = 0;
  double mean = 0;
  double standard_error = 0;
};

Moments moments_of(std::span<const double> values) {
  Moments result;
  for (const double each : values) {
    if (std::isnan(each)) continue;
    ++result.count;
    result.mean += each;
  }
  if (result.count == 0) return result;
  const auto count = static_cast<double>(result.count);
  result.mean /= count;
  double squares = 0;
  for (const double each : values) {
    if (!std::isnan(each)) squares += (each - result.mean) * (each - result.mean);
  }
  if (result.count > 1) result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

/// The mean, over steps from `begin` on, of how late the latest of the ranks that count is: beyond the median of the
/// longest stage, because ranks of a shorter stage may be late without anybody waiting.
double mean_of_latest(const StepMatrix& matrix, const std::vector<bool>& counts, std::size_t begin = 0) {
  const std::size_t width = matrix.steps.size() - begin;
  std::vector<double> longest(width, 0);
  for (std::size_t stage = 0; stage < matrix.stages.size(); ++stage) {
    const auto times = matrix.expected_of_stage(stage).subspan(begin);
    for (std::size_t step = 0; step < width; ++step) longest[step] = std::fmax(longest[step], times[step]);
  }
  std::vector<double> latest(width, 0);
  for (std::size_t rank = 0; rank < matrix.ranks; ++rank) {
    if (!counts[rank]) continue;
    const auto late = matrix.late_of(rank).subspan(begin);
    const auto times = matrix.expected_of_stage(matrix.stage_of[rank]).subspan(begin);
    for (std::size_t step = 0; step < width; ++step) {
      const double behind = late[step] + (times[step] - longest[step]);
      if (behind > latest[step]) latest[step] = behind;
    }
  }
  return std::accumulate(latest.begin(), latest.end(), 0.0) / static_cast<double>(width);
}

class Judge {
 public:
  Judge(std::span<const RankSteps> ranks, const SlowRankThresholds& thresholds)
      : thresholds_(thresholds), matrix_(step_matrix(ranks)) {
    result_.steps = matrix_.steps;
    measure_spread();
    drop_unconfirmed(matrix_, late_from_s_, scale_);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      moments_.push_back(moments_of(matrix_.late_of(rank)));
      result_.ranks.push_back(describe(ranks[rank], rank));
      if (moments_.back().count > 0) order_.push_back(rank);
    }
  }

  SlowRanks judge(std::span<const RankSteps> ranks) {
    if (order_.size() < 2 || matrix_.steps.size() < thresholds_.fewest_steps) return std::move(result_);
    result_.step_s = step_s_;
    result_.noise_s = noise_s_;
    count_late_steps();
    result_.verdict = JobVerdict::even;
    sort_by_lateness();
    find_slow(ranks);
    if (result_.slow.empty()) find_pauses(ranks);
    // A rank that became slow late in the record is not slow on average.
    for (const std::size_t parts : {2, 4}) {
      const std::size_t begin = matrix_.steps.size() - matrix_.steps.size() / parts;
      if (result_.verdict != JobVerdict::even || matrix_.steps.size() - begin < kFewestRecent) break;
      judge_from(begin, ranks);
    }
    return std::move(result_);
  }

 private:
  void sort_by_lateness() {
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return moments_[a].mean > moments_[b].mean; });
  }

  /// Keeps what it finds if it is a slow rank.
  void judge_from(std::size_t begin, std::span<const RankSteps> ranks) {
    const std::vector<Moments> all = moments_;
    const double spread_s = result_.spread_s;
    begin_ = begin;
    for (std::size_t rank = 0; rank < matrix_.ranks; ++rank)
      moments_[rank] = moments_of(matrix_.late_of(rank).subspan(begin));
    sort_by_lateness();
    find_slow(ranks);
    if (!result_.slow.empty()) return;
    begin_ = 0;
    moments_ = all;
    result_.spread_s = spread_s;
    sort_by_lateness();
  }

  RankLateness describe(const RankSteps& rank, std::size_t index) const {
    RankLateness row;
    row.rank = rank.rank;
    row.steps = moments_[index].count;
    row.late_s = moments_[index].mean;
    double total_s = 0, own_s = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; row.steps > 0 && i < rank.step.size(); ++i) {
      if (!std::binary_search(matrix_.steps.begin(), matrix_.steps.end(), rank.step[i])) continue;
      total_s += rank.total_s[i];
      own_s += rank.own_s[i];
      ++count;
    }
    if (count > 0) {
      row.step_s = total_s / static_cast<double>(count);
      row.own_s = own_s / static_cast<double>(count);
    }
    return row;
  }

  /// Ranks differ more in a longer step.
  double late_from_s(std::size_t step) const { return late_from_s_ * std::max(scale_[step], 1.0); }

  /// The spread of single steps, from at most a million of them, and what counts as late.
  void measure_spread() {
    if (matrix_.steps.empty()) return;
    step_s_ = std::accumulate(matrix_.job_s.begin(), matrix_.job_s.end(), 0.0) /
              static_cast<double>(matrix_.steps.size());
    const std::size_t stride = matrix_.late_s.size() / 1'000'000 + 1;
    scale_ = step_scale(matrix_);
    std::vector<double> sample;
    for (std::size_t i = 0; i < matrix_.late_s.size(); i += stride) {
      if (!std::isnan(matrix_.late_s[i]))
        sample.push_back(matrix_.late_s[i] / scale_[i % matrix_.steps.size()]);
    }
    noise_s_ = spread_of(std::move(sample));
    late_from_s_ = std::max(thresholds_.late_spreads * noise_s_, thresholds_.least_late * step_s_);
  }

  void count_late_steps() {
    std::vector<double> latest(matrix_.steps.size(), 0);
    for (std::size_t rank = 0; rank < matrix_.ranks; ++rank) {
      const auto late = matrix_.late_of(rank);
      for (std::size_t step = 0; step < late.size(); ++step)
        latest[step] = std::fmax(latest[step], late[step]);
    }
    for (std::size_t rank = 0; rank < matrix_.ranks; ++rank) {
      const auto late = matrix_.late_of(rank);
      RankLateness& row = result_.ranks[rank];
      for (std::size_t step = 0; step < late.size(); ++step) {
        if (late[step] > late_from_s(step)) row.late_share += 1;
        if (late[step] >= latest[step]) row.last_share += 1;
      }
      if (row.steps == 0) continue;
      row.late_share /= static_cast<double>(row.steps);
      row.last_share /= static_cast<double>(row.steps);
    }
  }

  /// The largest group of first ranks each of which stands out from the ranks behind the group.
  void find_slow(std::span<const RankSteps> ranks) {
    std::size_t most = 0;
    const double least_s = thresholds_.least_gain * result_.step_s;
    while (most < order_.size() / 2 && moments_[order_[most]].mean > least_s) ++most;
    for (std::size_t count = most; count > 0; --count) {
      const double last = moments_[order_[count - 1]].mean;
      std::vector<double> others;
      for (std::size_t i = count; i < order_.size(); ++i) others.push_back(moments_[order_[i]].mean);
      const double spread = spread_of(others);
      std::vector<double> copy = others;
      const double middle = lower_median(copy);
      const double error = moments_[order_[count - 1]].standard_error;
      const RankLateness& row = result_.ranks[order_[count - 1]];
      const bool lasting = last - middle > thresholds_.standard_errors * error ||
                           row.late_share * static_cast<double>(row.steps) >= thresholds_.fewest_late;
      if (!lasting || last - middle <= std::max(thresholds_.spreads * spread, least_s)) continue;
      result_.spread_s = spread;
      describe_slow(ranks, count, middle, spread);
      if (!result_.slow.empty()) result_.verdict = JobVerdict::slow_rank;
      return;
    }
    std::vector<double> all;
    for (const std::size_t rank : order_) all.push_back(moments_[rank].mean);
    result_.spread_s = spread_of(std::move(all));
  }

  /// For each of the first `count` ranks of the order: the longest input of the ranks behind it and of all others.
  std::vector<double> inputs_left(std::span<const RankSteps> ranks, std::size_t count) const {
    std::vector<bool> first(ranks.size(), false);
    for (std::size_t i = 0; i < count; ++i) first[order_[i]] = true;
    double longest_s = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!first[rank]) longest_s = std::fmax(longest_s, ranks[rank].input_s);
    }
    std::vector<double> left_s(count);
    for (std::size_t i = count; i-- > 0;) {
      left_s[i] = longest_s;
      longest_s = std::fmax(longest_s, ranks[order_[i]].input_s);
    }
    return left_s;
  }

  /// Share of the job's step that ends without `lost_s`; inputs that need `input_s` a step allow no more.
  double gain_of(double lost_s, double input_s) const {
    if (result_.step_s <= 0) return 0;
    return std::clamp(lost_s / result_.step_s, 0.0, std::max(0.0, 1 - input_s / result_.step_s));
  }

  void describe_slow(std::span<const RankSteps> ranks, std::size_t count, double middle, double spread) {
    std::vector<bool> counts(matrix_.ranks, true);
    const std::vector<double> inputs_s = inputs_left(ranks, count);
    const double now_s = mean_of_latest(matrix_, counts, begin_);
    double left_s = now_s;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t rank = order_[i];
      counts[rank] = false;
      // Thousands of slow ranks would be thousands of passes: the gain of all is asked for once.
      if (i < kMaxPasses || i + 1 == count) left_s = mean_of_latest(matrix_, counts, begin_);
      result_.slow.push_back(describe_one(ranks[rank].rank, rank));
      SlowRank& slow = result_.slow.back();
      slow.margin =
          spread > 0 ? (slow.mean_late_s - middle) / spread : std::numeric_limits<double>::infinity();
      // An input that is as fast as the others': the rank waits for it, and they for each other.
      const double own_s = ranks[rank].input_s;
      const bool alike = own_s > 0 && own_s <= (1 + thresholds_.least_late) * inputs_s[i];
      slow.gain_share = alike ? 0 : gain_of(now_s - left_s, inputs_s[i]);
    }
    drop_what_adds_nothing();
    result_.gain_share = result_.slow.back().gain_share;
    const bool is_late = result_.slow.front().mean_late_s > thresholds_.least_late * result_.step_s;
    if (result_.gain_share < (is_late ? thresholds_.least_gain_of_late : thresholds_.least_gain)) {
      result_.slow.clear();
      result_.gain_share = 0;
    }
  }

  /// Behind the last rank without which the job gains something more, ranks are late now and then, as all are.
  void drop_what_adds_nothing() {
    std::size_t count = result_.slow.size();
    while (count > 1 &&
           result_.slow[count - 1].gain_share - result_.slow[count - 2].gain_share < thresholds_.least_gain)
      --count;
    result_.slow.resize(count);
  }

  bool is_latest(std::size_t rank, std::size_t step) const {
    for (const std::size_t other : order_) {
      if (matrix_.late_of(other)[step] > matrix_.late_of(rank)[step]) return false;
    }
    return true;
  }

  SlowRank describe_one(std::int64_t number, std::size_t rank) const {
    SlowRank slow;
    slow.rank = number;
    slow.mean_late_s = moments_[rank].mean;
    const auto late = matrix_.late_of(rank);
    std::vector<std::int64_t> late_steps;
    for (std::size_t step = 0; step < late.size(); ++step) {
      if (late[step] > late_from_s(step)) late_steps.push_back(matrix_.steps[step]);
    }
    slow.period_steps = period_of(late_steps);
    const std::size_t at = slow.period_steps ? 0 : change_of(late);
    slow.since_step = matrix_.steps[at];
    slow.from_the_start = at == 0;
    // A part of its mean lateness, so that a rank that is late by varying times counts as steady.
    const auto is_late = [&](std::size_t step) {
      return late[step] > std::min(late_from_s(step), 0.25 * slow.mean_late_s);
    };
    std::size_t known = 0, late_count = 0;
    for (std::size_t step = at; step < late.size(); ++step) {
      known += std::isnan(late[step]) ? 0 : 1;
      late_count += is_late(step) ? 1 : 0;
    }
    slow.late_share = known == 0 ? 0 : static_cast<double>(late_count) / static_cast<double>(known);
    slow.steady = slow.late_share >= thresholds_.steady_share;
    for (std::size_t step = begin_; step < late.size(); ++step) {
      if (std::isnan(late[step])) continue;
      ++slow.judged;
      slow.slowest += is_late(step) && is_latest(rank, step) ? 1 : 0;
    }
    slow.z = slowest_z(slow.slowest, slow.judged, order_.size());
    if (slow.steady) slow.period_steps.reset();
    return slow;
  }

  /// Steps that are late although no rank is: what the job loses to them.
  void find_pauses(std::span<const RankSteps> ranks) {
    const std::size_t width = matrix_.steps.size();
    std::vector<double> latest(width, 0), normal(width, 0);
    for (std::size_t rank = 0; rank < matrix_.ranks; ++rank) {
      bool pauses = false;
      const bool now_and_then = result_.ranks[rank].late_share < thresholds_.steady_share;
      const auto late = matrix_.late_of(rank);
      for (std::size_t step = 0; step < width; ++step) {
        latest[step] = std::fmax(latest[step], late[step]);
        if (now_and_then && late[step] > late_from_s(step)) {
          pauses = true;
        } else {
          normal[step] = std::fmax(normal[step], late[step]);
        }
      }
      result_.pausing_ranks += pauses ? 1 : 0;
    }
    double lost_s = 0;
    for (std::size_t step = 0; step < width; ++step) lost_s += latest[step] - normal[step];
    lost_s /= static_cast<double>(width);
    double input_s = 0;
    for (const RankSteps& rank : ranks) input_s = std::fmax(input_s, rank.input_s);
    const double gain = gain_of(lost_s, input_s);
    if (gain < thresholds_.least_gain) {
      result_.pausing_ranks = 0;
      return;
    }
    if (is_of_one_rank(ranks)) return;
    result_.verdict = JobVerdict::pauses;
    result_.gain_share = gain;
  }

  /// Whether nearly all late steps are of one rank; that one is slow now and then.
  bool is_of_one_rank(std::span<const RankSteps> ranks) {
    double all = 0;
    for (const RankLateness& row : result_.ranks) all += row.late_share * static_cast<double>(row.steps);
    const std::size_t first = order_.front();
    const RankLateness& row = result_.ranks[first];
    const double own = row.late_share * static_cast<double>(row.steps);
    if (own < std::max(thresholds_.fewest_late, kOfOneRank * all)) return false;
    std::vector<double> others;
    for (std::size_t i = 1; i < order_.size(); ++i) others.push_back(moments_[order_[i]].mean);
    const double spread = spread_of(others);
    describe_slow(ranks, 1, lower_median(others), spread);
    if (result_.slow.empty()) return false;
    result_.pausing_ranks = 0;
    result_.verdict = JobVerdict::slow_rank;
    return true;
  }

  SlowRankThresholds thresholds_;
  StepMatrix matrix_;
  SlowRanks result_;
  std::vector<Moments> moments_;
  std::vector<std::size_t> order_;  ///< ranks with steps, then the latest first
  double step_s_ = 0;
  double noise_s_ = 0;
  double late_from_s_ = 0;     ///< of a step of usual length
  std::vector<double> scale_;  ///< of each step, in usual lengths
  std::size_t begin_ = 0;      ///< the steps from here on are judged
};

}  // namespace

std::string_view name_of(JobVerdict verdict) noexcept {
  switch (verdict) {
    case JobVerdict::even:
      return "even";
    case JobVerdict::slow_rank:
      return "slow_rank";
    case JobVerdict::pauses:
      return "pauses";
    case JobVerdict::undetermined:
      break;
  }
  return "undetermined";
}

bool in_step(std::span<const RankSteps> ranks) {
  std::vector<double> means_s;
  for (const RankSteps& rank : ranks) {
    if (rank.total_s.empty()) continue;
    // In the first steps a rank waits for those that start later.
    const auto half = rank.total_s.begin() + static_cast<std::ptrdiff_t>(rank.total_s.size() / 2);
    means_s.push_back(std::accumulate(half, rank.total_s.end(), 0.0) /
                      static_cast<double>(rank.total_s.end() - half));
  }
  std::sort(means_s.begin(), means_s.end());
  if (means_s.size() < 2 || means_s.front() <= 0) return true;
  const double low_s = means_s[means_s.size() / 20];
  return means_s.back() - low_s <= kInStep * low_s;
}

SlowRanks slow_ranks(std::span<const RankSteps> ranks, const SlowRankThresholds& thresholds) {
  return Judge(ranks, thresholds).judge(ranks);
}

std::optional<double> step_without(std::span<const RankSteps> ranks, std::span<const std::int64_t> without) {
  const StepMatrix matrix = step_matrix(ranks);
  std::vector<bool> counts(ranks.size(), true);
  const double now_s = matrix.steps.empty() ? 0 : mean_of_latest(matrix, counts);
  std::size_t left = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    counts[rank] = std::find(without.begin(), without.end(), ranks[rank].rank) == without.end();
    left += counts[rank] ? 1 : 0;
  }
  if (matrix.steps.empty() || left == 0) return std::nullopt;
  double step_s = 0;
  for (const double each : matrix.job_s) step_s += each;
  return step_s / static_cast<double>(matrix.steps.size()) - (now_s - mean_of_latest(matrix, counts));
}

}  // namespace headrace::analysis::cluster
