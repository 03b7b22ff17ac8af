// One rank beside the others of its run.
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::profile {

RankFigures rank_figures(const Profile& profile);

/// A loader in a segment of another rank.
struct RankSource {
  std::string path;
  std::uint32_t loader = 0;
  int rank = 0;
};

/// Reads every source into `profile.ranks`. What cannot be read is said in `profile.notes`. Never throws
/// for a bad file.
void add_ranks(Profile& profile, const std::vector<RankSource>& sources);

}  // namespace headrace::profile
