#include "headrace/profile/rank_figures.h"

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

}  // namespace headrace::profile
