// The ranks of a run folder beside each other: the same columns and the same rule as for a job of many ranks.
//
//     RunRanks ranks(profile);
//     for (const auto& path : others) ranks.add(read_profile(image_of(path)));
//     std::move(ranks).write(profile);   // profile.ranks, profile.slow_ranks
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/analysis/cluster/slow_ranks.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis::cluster {

class RunRanks {
 public:
  explicit RunRanks(const profile::Profile& own) { steps_.push_back(steps_of(own)); }

  void add(const profile::Profile& other);
  /// Sets `ranks`, by number, and `slow_ranks` as `slow_ranks()` finds them. Without four steps in common no rank
  /// is slow.
  void write(profile::Profile& own) &&;

 private:
  static RankSteps steps_of(const profile::Profile& profile);

  std::vector<RankSteps> steps_;
  std::vector<profile::RankFigures> figures_;
};

/// A loader in a segment of another rank.
struct RankSource {
  std::string path;
  std::uint32_t loader = 0;
  int rank = 0;
};

/// Compares the profile with every source. What cannot be read is said in `profile.notes`. Never throws for a bad
/// file.
void add_ranks(profile::Profile& profile, const std::vector<RankSource>& sources);

}  // namespace headrace::analysis::cluster
