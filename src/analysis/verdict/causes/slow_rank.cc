// One rank's input is slower than that of its siblings; where ranks meet at every step, all of them wait for
// it.
#include <algorithm>
#include <vector>

#include "headrace/profile/rank_figures.h"
#include "sentences.h"

namespace headrace::analysis {
namespace {

/// Largest demands of the other ranks, ascending, without those of ranks with too few steps to judge.
std::vector<double> other_demands(const profile::Profile& profile, const Thresholds& thresholds) {
  std::vector<double> demands_s;
  for (const profile::RankFigures& other : profile.ranks) {
    if (static_cast<double>(other.steps) >= thresholds.gate.fewest_steps && other.demand_s > 0)
      demands_s.push_back(other.demand_s);
  }
  std::sort(demands_s.begin(), demands_s.end());
  return demands_s;
}

}  // namespace

std::optional<Finding> judge_slow_rank(const Case& facts) {
  if (facts.candidate < 0 || facts.gate.starved_share < facts.thresholds.gate.starved_share)
    return std::nullopt;
  const std::vector<int>& slow = facts.profile.slow_ranks;
  if (std::find(slow.begin(), slow.end(), facts.profile.rank) == slow.end()) return std::nullopt;
  const std::vector<double> demands_s = other_demands(facts.profile, facts.thresholds);
  if (demands_s.empty()) return std::nullopt;
  const double elsewhere_s = demands_s[(demands_s.size() - 1) / 2];
  const double own_s = profile::rank_figures(facts.profile).demand_s;
  // Its step is slow, but not by its input.
  if (own_s <= elsewhere_s) return std::nullopt;

  const std::string rank = "rank " + std::to_string(facts.profile.rank);
  const std::string& op = facts.op().name;
  const std::string others = counted(static_cast<double>(demands_s.size()), "other rank");
  Finding finding;
  finding.headline = rank + " loads more slowly than the others: " + op + " needs " + duration(own_s) +
                     " a step there, " + duration(elsewhere_s) + " elsewhere";
  finding.evidence =
      cause_evidence(op + " needs " + duration(own_s) + " a step in " + rank + "; in the " + others +
                         " the slowest operator needs " + duration(elsewhere_s) + " (median)",
                     {{"rank", static_cast<double>(facts.profile.rank)},
                      {"demand_s", own_s},
                      {"others_demand_s", elsewhere_s},
                      {"others", static_cast<double>(demands_s.size())}});
  Advice advice =
      in_words("look at what " + rank +
               " has of its own: its storage, its cores and neighbours, its share of the data; as "
               "fast as the others it would not be waited for");
  const Prediction then =
      facts.predictor.predict({{Change::Kind::kService, facts.candidate, 1, elsewhere_s / own_s}});
  finding.advice.push_back(with_prediction(std::move(advice), facts.gate.step_s, then));
  for (Advice& row : advise_workers(facts.predictor, facts.candidate)) {
    finding.advice.push_back(std::move(row));
  }
  return finding;
}

}  // namespace headrace::analysis
