// One rank's input is slower than that of its siblings; where ranks meet at every step, all of them wait for
// it.
#include <algorithm>
#include <vector>

#include "headrace/profile/rank_figures.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

struct Siblings {
  std::vector<double> demands;
  std::size_t starving = 0;

  double median_s() const { return demands[(demands.size() - 1) / 2]; }
};

/// Ranks with too few steps to judge are not siblings.
Siblings siblings_of(const profile::Profile& profile, const Thresholds& thresholds) {
  Siblings siblings;
  for (const profile::RankFigures& other : profile.ranks) {
    if (static_cast<double>(other.steps) < thresholds.gate.fewest_steps || other.demand_s <= 0) continue;
    siblings.demands.push_back(other.demand_s);
    siblings.starving += other.starved_share >= thresholds.gate.starved_share ? 1 : 0;
  }
  std::sort(siblings.demands.begin(), siblings.demands.end());
  return siblings;
}

}  // namespace

std::optional<Finding> judge_slow_rank(const Case& facts) {
  if (facts.candidate < 0 || facts.gate.starved_share < facts.thresholds.gate.starved_share)
    return std::nullopt;
  const RankThresholds& thresholds = facts.thresholds.rank;
  const Siblings siblings = siblings_of(facts.profile, facts.thresholds);
  if (siblings.demands.empty()) return std::nullopt;
  if (static_cast<double>(siblings.starving) >
      thresholds.also_starve * static_cast<double>(siblings.demands.size())) {
    return std::nullopt;
  }
  const double own_s = profile::rank_figures(facts.profile).demand_s;
  if (own_s < thresholds.slower * siblings.median_s()) return std::nullopt;

  const std::string rank = "rank " + std::to_string(facts.profile.rank);
  const std::string& op = facts.op().name;
  const std::string others = counted(static_cast<double>(siblings.demands.size()), "other rank");
  Finding finding;
  finding.headline = rank + " loads more slowly than the others: " + op + " needs " + duration(own_s) +
                     " a step there, " + duration(siblings.median_s()) + " elsewhere";
  finding.evidence = cause_evidence(
      op + " needs " + duration(own_s) + " a step in " + rank + "; in the " + others +
          " the slowest operator needs " + duration(siblings.median_s()) + " (median), and " +
          (siblings.starving == 0 ? "none starves" : std::to_string(siblings.starving) + " starve"),
      {{"rank", static_cast<double>(facts.profile.rank)},
       {"demand_s", own_s},
       {"others_demand_s", siblings.median_s()},
       {"others", static_cast<double>(siblings.demands.size())}});
  Advice advice =
      in_words("look at what " + rank +
               " has of its own: its storage, its cores and neighbours, its share of the data; as "
               "fast as the others it would not be waited for");
  const Prediction then =
      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, siblings.median_s() / own_s}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
  for (Advice& row : advise_workers(facts.predictor, facts.candidate)) {
    finding.advice.push_back(std::move(row));
  }
  return finding;
}

}  // namespace headrace::analysis
