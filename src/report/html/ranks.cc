// This loader in the other ranks of the run.
#include <algorithm>
#include <cmath>

#include "figures.h"
#include "headrace/analysis/words.h"
#include "headrace/profile/rank_figures.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;
using profile::RankFigures;

namespace {

void write_rank(Markup& out, const RankFigures& rank, double longest_s, bool own) {
  const auto row = out.open("tr", {{"class", own ? "own" : "other"}});
  out.leaf("th", {{"scope", "row"}}, "rank " + std::to_string(rank.rank) + (own ? ", this one" : ""));
  {
    const auto cell = out.open("td", {{"class", "picture"}});
    const double step = fraction(rank.step_s / longest_s);
    const double wait = step * fraction(rank.wait_share);
    const double starved = std::min(wait, step * fraction(rank.starved_share));
    write_bar(out,
              "rank " + std::to_string(rank.rank) + ": " + duration(rank.step_s) + " a step, waits " +
                  percent(rank.wait_share),
              {{"starved", starved, "starved " + percent(rank.starved_share)},
               {"floor", wait - starved, "waits " + percent(rank.wait_share)},
               {"compute", step - wait, "training step " + duration(rank.compute_s)}});
  }
  out.leaf("td", {{"class", "number"}}, duration(rank.step_s));
  out.leaf("td", {{"class", "number"}}, percent(rank.wait_share));
  out.leaf("td", {{"class", "number"}}, duration(rank.compute_s));
  out.leaf("td", {{"class", "number"}}, duration(rank.demand_s));
  out.leaf("td", {{"title", whole(rank.op)}}, brief(rank.op));
  out.leaf("td", {{"class", "number"}}, std::to_string(rank.steps));
}

}  // namespace

void write_ranks(Markup& out, const Subject& subject) {
  if (subject.profile.ranks.empty()) return;
  std::vector<RankFigures> ranks = subject.profile.ranks;
  ranks.push_back(profile::rank_figures(subject.profile));
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankFigures& a, const RankFigures& b) { return a.rank < b.rank; });
  double longest_s = 0;
  for (const RankFigures& rank : ranks) longest_s = std::max(longest_s, rank.step_s);
  if (!(longest_s > 0) || !std::isfinite(longest_s)) return;

  const auto section = out.open("section", {{"class", "ranks"}});
  out.leaf("h2", "The ranks");
  out.leaf("p", {{"class", "read"}},
           "An average step of each rank. Ranks that exchange gradients go at the pace of the slowest.");
  std::size_t drawn = 0;
  {
    const auto box = out.open("div", {{"class", "scroll tall"}, {"tabindex", "0"}});
    const auto table = out.open("table", {{"class", "states"}});
    {
      const auto head = out.open("thead");
      const auto row = out.open("tr");
      out.leaf("th", {{"scope", "col"}}, "");
      out.leaf("th", {{"scope", "col"}, {"class", "picture"}}, "");
      for (const char* title : {"step", "waits", "training step", "largest demand"})
        out.leaf("th", {{"scope", "col"}, {"class", "number"}}, title);
      out.leaf("th", {{"scope", "col"}}, "of");
      out.leaf("th", {{"scope", "col"}, {"class", "number"}}, "steps");
    }
    const auto body = out.open("tbody");
    for (const RankFigures& rank : ranks) {
      const bool own = rank.rank == subject.profile.rank;
      if (drawn >= kMaxDrawn && !own) continue;
      ++drawn;
      write_rank(out, rank, longest_s, own);
    }
  }
  if (drawn < ranks.size()) {
    out.leaf("p", {{"class", "read"}},
             "and " + counted(static_cast<double>(ranks.size() - drawn), "more rank"));
  }
}

}  // namespace headrace::report
