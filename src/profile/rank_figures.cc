#include "headrace/profile/rank_figures.h"

#include <algorithm>

#include "headrace/profile/errors.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/snapshot.h"

namespace headrace::profile {

RankFigures rank_figures(const Profile& profile) {
  RankFigures figures;
  figures.rank = profile.rank;
  figures.steps = profile.sink.getnext_wait.count;
  figures.step_s = profile.sink.step_s;
  figures.compute_s = profile.sink.compute_s;
  figures.wait_share = profile.sink.wait_share;
  figures.starved_share = profile.sink.starved_share;
  for (const OperatorProfile& op : profile.operators) {
    if (op.demand_s <= figures.demand_s) continue;
    figures.demand_s = op.demand_s;
    figures.op = op.name;
  }
  return figures;
}

void add_ranks(Profile& profile, const std::vector<RankSource>& sources) {
  for (const RankSource& source : sources) {
    try {
      SegmentImage image;
      image.read_file(source.path);
      profile.ranks.push_back(rank_figures(read_profile(image, source.loader)));
    } catch (const Error& error) {
      profile.notes.push_back("rank " + std::to_string(source.rank) + " is not compared: " + error.what());
    }
  }
  std::sort(profile.ranks.begin(), profile.ranks.end(),
            [](const RankFigures& a, const RankFigures& b) { return a.rank < b.rank; });
}

}  // namespace headrace::profile
