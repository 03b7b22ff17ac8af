#include "headrace/analysis/cluster/run_ranks.h"

#include <algorithm>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/profile.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"

namespace headrace::analysis::cluster {

RankSteps RunRanks::steps_of(const profile::Profile& profile) {
  RankSteps result;
  result.rank = profile.rank;
  result.input_s = profile::rank_figures(profile).demand_s;
  const auto& samples = profile.sink.sequence;
  auto step = static_cast<std::int64_t>(profile.sink.steps) - static_cast<std::int64_t>(samples.size());
  for (const auto& sample : samples) {
    result.step.push_back(step++);
    result.total_s.push_back(sample.wait_s + sample.compute_s);
    result.own_s.push_back(sample.wait_s);
  }
  return result;
}

void RunRanks::add(const profile::Profile& other) {
  steps_.push_back(steps_of(other));
  figures_.push_back(profile::rank_figures(other));
}

void RunRanks::write(profile::Profile& own) && {
  std::sort(figures_.begin(), figures_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  own.ranks = std::move(figures_);
  if (!in_step(steps_)) {
    for (RankSteps& rank : steps_) rank.own_s = rank.total_s;
  }
  own.slow_ranks.clear();
  for (const SlowRank& slow : slow_ranks(steps_).slow) own.slow_ranks.push_back(static_cast<int>(slow.rank));
}

void add_ranks(profile::Profile& profile, const std::vector<RankSource>& sources) {
  RunRanks ranks(profile);
  for (const RankSource& source : sources) {
    try {
      profile::SegmentImage image;
      image.read_file(source.path);
      ranks.add(profile::read_profile(image, source.loader));
    } catch (const Error& error) {
      profile.notes.push_back("rank " + std::to_string(source.rank) + " is not compared: " + error.what());
    }
  }
  std::move(ranks).write(profile);
}

}  // namespace headrace::analysis::cluster
