// Ranks of a job that the others wait for, since when, and what the job would gain without that.
//
//     const SlowRanks found = slow_ranks(ranks);
//     for (const SlowRank& slow : found.slow) std::cout << slow.rank << " costs " << slow.gain_share;
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::analysis::cluster {

/// The steps of one rank: columns of one length, in any order. Times are seconds.
struct RankSteps {
  std::int64_t rank = 0;
  /// Equal numbers are the same step of the job.
  std::vector<std::int64_t> step;
  std::vector<double> total_s;
  /// The part that does not depend on other ranks: the step less the time in which the rank waited for them
  /// in a collective. The rank with the longest own time comes last, and waits least.
  std::vector<double> own_s;
  /// Stage of the pipeline, which is a share of the work of its own. Equal for all ranks where it is not known.
  std::int64_t stage = 0;
  /// The shortest step that the rank's own input allows, seconds; 0 where it is not known. Of ranks that meet in
  /// every step and have equal inputs, one waits for its input and the others for it: no step gets shorter than
  /// the inputs of those that are left.
  double input_s = 0;
};

/// Whether the ranks meet in every step, so that the means of the second half of their steps differ by less than 5 % (of
/// many ranks, the twentieth part with the shortest steps is left out: a rank with longer ones than the others does not
/// meet them). Recordings of loops do not show waits for other ranks: ranks that are in step are compared by their waits
/// for the input, others by their whole steps. True for fewer than two ranks.
bool in_step(std::span<const RankSteps> ranks);

/// Thresholds; times are shares of the job's step.
struct SlowRankThresholds {
  /// Fewer steps in common show no spread.
  std::size_t fewest_steps = 4;
  /// Gain at which fixing a rank is worth a sentence.
  double least_gain = 0.02;
  /// `least_gain` for ranks late by `least_late` on average. With many ranks and a large spread of single
  /// steps, some other rank is nearly as late in each step, so a rank that is 10 % slow may cost 1 % only.
  double least_gain_of_late = 0.005;
  /// A rank's mean lateness in units of the others' spread (scaled median absolute deviation). 10,000 ranks
  /// without a cause reach 4.
  double spreads = 6;
  /// Its mean lateness in its own standard errors over the steps, unless late in so many steps.
  double standard_errors = 4;
  double fewest_late = 3;
  /// A rank that is late in so many of its steps since the first is steadily slow.
  double steady_share = 0.6;
  /// A step counts as late beyond so many spreads of all ranks and steps, and beyond `least_late`.
  double late_spreads = 6;
  double least_late = 0.05;
};

struct SlowRank {
  std::int64_t rank = 0;
  double mean_late_s = 0;       ///< own time beyond the median of the ranks, on average over steps
  double margin = 0;            ///< the same in spreads of the other ranks; infinite where these are alike
  double late_share = 0;        ///< share of its steps, since the first late one, in which it is late
  bool steady = false;          ///< else now and then
  std::size_t slowest = 0;      ///< steps in which it is late and no rank is later ...
  std::size_t judged = 0;       ///< ... of so many: all of them, the last half or the last quarter
  double z = 0;                 ///< how surprising that is by chance (`slowest_z` of slowest_chance.h)
  std::int64_t since_step = 0;  ///< the first step of the slow stretch
  bool from_the_start = false;  ///< since_step is the first step that is known
  std::optional<std::int64_t> period_steps;  ///< if it comes now and then, at regular distances
  /// Share of the job's step that ends if this rank (and those before it) becomes like the others.
  double gain_share = 0;
};

enum class JobVerdict : std::uint8_t {
  undetermined,  ///< fewer than two ranks or too few common steps
  even,          ///< no rank is slower than the normal spread
  slow_rank,     ///< `slow` says which
  pauses,        ///< no rank is slow on average: many pause now and then, at different times
};
/// "undetermined", "even", "slow_rank", "pauses".
std::string_view name_of(JobVerdict verdict) noexcept;

struct RankLateness {
  std::int64_t rank = 0;
  std::size_t steps = 0;  ///< that it has in common with the job
  double step_s = 0;      ///< mean
  double own_s = 0;       ///< mean
  double late_s = 0;      ///< mean; negative: it waits for others
  double late_share = 0;  ///< share of steps in which it is late
  double last_share = 0;  ///< share of steps in which no rank is later
};

struct SlowRanks {
  JobVerdict verdict = JobVerdict::undetermined;
  std::vector<std::int64_t> steps;  ///< that at least half of the ranks have
  double step_s = 0;    ///< the job's: mean over steps of the ranks' median, at least the longest own time
  double spread_s = 0;  ///< of the ranks' mean lateness, without the slow ones
  double noise_s = 0;   ///< of the lateness of single steps
  std::vector<SlowRank> slow;       ///< the slowest first
  double gain_share = 0;            ///< share of the job's step that all of these cost; of pauses: theirs
  std::size_t pausing_ranks = 0;    ///< of `pauses`
  std::vector<RankLateness> ranks;  ///< in the order given; 0 steps: nothing in common
};

/// Pure; thread-safe. Ranks whose columns differ in length count as without steps; steps with a time that is
/// not finite or is negative are left out, as are steps that fewer than half of the ranks have.
///
/// Lateness is own time less the lower median of the ranks in the same step, so no common clock is needed. Own
/// times are taken in shares of their stage's, so a longer stage does not count as slow ranks (`stage_balance`
/// judges stages).
/// A step in which a rank is late by itself and nobody waits for it has lost events, and is left out for that rank.
/// Slow ranks are the largest group, of at most half of the ranks, each of which is later than those behind the
/// group by `spreads`, `least_gain` and (`standard_errors` or `fewest_late`). The gain is the difference between
/// the latest rank and the latest of those that are left, on average over steps. If none is found, the last half
/// and then the last quarter of the steps are judged alone (a rank that became slow); the gain is that of these
/// steps.
SlowRanks slow_ranks(std::span<const RankSteps> ranks, const SlowRankThresholds& thresholds = {});

/// The job's mean step, in seconds, if these ranks were never later than the latest of the others. Nothing if the
/// ranks have no step in common or none is left.
std::optional<double> step_without(std::span<const RankSteps> ranks, std::span<const std::int64_t> without);

/// Lateness (within its stage) of each given rank in each of `steps` (row by row, NaN: the rank has no such step),
/// for a heat map.
std::vector<double> lateness(std::span<const RankSteps> ranks, std::span<const std::int64_t> steps);

}  // namespace headrace::analysis::cluster
