// How full each queue was: the share of time at each level.
#include <algorithm>
#include <cmath>

#include "../loader_sections.h"
#include "figures.h"
#include "headrace/analysis/queue_words.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::percent;

namespace {

/// More bars are thinner than a pixel on a phone.
constexpr std::size_t kMaxBars = 32;

struct LevelBar {
  double share = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Levels as bars; of a large capacity, neighbours together.
std::vector<LevelBar> bars_of(const profile::QueueProfile& queue) {
  const std::size_t levels = queue.occupancy.size();
  std::vector<LevelBar> bars(std::min(kMaxBars, levels));
  const auto per_bin = static_cast<std::size_t>(std::max(1, queue.levels_per_bin));
  for (std::size_t i = 0; i < levels; ++i) {
    const std::size_t at = i * bars.size() / levels;
    LevelBar& bar = bars[at];
    if (i == 0 || (i - 1) * bars.size() / levels != at) bar.first = i * per_bin;
    bar.share += fraction(queue.occupancy[i]);
    bar.last = i * per_bin + per_bin - 1;
  }
  // The last bin ends at the capacity.
  if (!bars.empty() && queue.capacity > 0) {
    bars.back().last = std::min(bars.back().last, static_cast<std::size_t>(queue.capacity));
    bars.back().last = std::max(bars.back().last, bars.back().first);
  }
  return bars;
}

std::string title_of(const LevelBar& bar) {
  const std::string levels = bar.first == bar.last
                                 ? "level " + std::to_string(bar.first)
                                 : "levels " + std::to_string(bar.first) + " to " + std::to_string(bar.last);
  return levels + ": " + percent(bar.share);
}

void write_bars(Markup& out, const std::vector<LevelBar>& bars, double most, const std::string& label) {
  constexpr double kHeight = 60;
  constexpr double kPitch = 10;
  const auto svg =
      out.open("svg", {{"viewBox", "0 0 " + length(kPitch * static_cast<double>(bars.size())) + " 60"},
                       {"preserveAspectRatio", "none"},
                       {"role", "img"},
                       {"aria-label", label}});
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (!(bars[i].share > 0)) continue;
    const double high = std::max(1.5, kHeight * bars[i].share / most);
    const double level = bars.size() > 1 ? static_cast<double>(i) / static_cast<double>(bars.size() - 1) : 0;
    const auto rect = out.open("rect", {{"class", level_class(level)},
                                        {"x", length(kPitch * static_cast<double>(i) + 0.5)},
                                        {"y", length(kHeight - high)},
                                        {"width", "9"},
                                        {"height", length(high)}});
    out.leaf("title", title_of(bars[i]));
  }
}

void write_queue(Markup& out, const profile::QueueProfile& queue) {
  const auto figure = out.open("figure");
  out.leaf("figcaption", {{"title", whole(queue.name)}}, brief(analysis::in_a_table(queue)));
  const std::vector<LevelBar> bars = bars_of(queue);
  double most = 0;
  for (const LevelBar& bar : bars) most = std::max(most, bar.share);
  const std::string shares = "empty " + percent(queue.empty_share) + ", full " + percent(queue.full_share);
  if (most > 0) {
    write_bars(out, bars, most, whole(queue.name) + ": " + level_words(queue) + " on average, " + shares);
  } else {
    out.leaf("p", {{"class", "nothing"}}, "no time passed");
  }
  {
    const auto axis = out.open("div", {{"class", "axis"}});
    out.leaf("span", "0");
    out.leaf("span", queue.capacity > 0 ? std::to_string(queue.capacity) : "");
  }
  out.leaf("p", {{"class", "shares"}}, level_words(queue) + " on average");
  out.leaf("p", {{"class", "shares"}}, shares);
}

}  // namespace

void write_histograms(Markup& out, const Subject& subject) {
  const std::vector<profile::QueueProfile> queues = folded(subject.profile.queues);
  if (queues.empty()) return;
  const auto section = out.open("section", {{"class", "queues-over-levels"}});
  out.leaf("h2", "How full the queues were");
  out.leaf(
      "p", {{"class", "read"}},
      "Share of the time at each level, empty on the left, full on the right; heights are relative to each "
      "queue's most frequent level. A queue that is mostly empty starves what takes from it; one that is "
      "mostly full is ahead of it.");
  const std::size_t drawn = std::min(kMaxDrawn, queues.size());
  {
    const auto grid = out.open("div", {{"class", "histograms"}});
    for (std::size_t i = 0; i < drawn; ++i) write_queue(out, queues[i]);
  }
  if (drawn < queues.size()) {
    out.leaf("p", {{"class", "read"}},
             "and " + counted(static_cast<double>(queues.size() - drawn), "more queue"));
  }
}

}  // namespace headrace::report
