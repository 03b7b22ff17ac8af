// The page of a job of many ranks.
#include "headrace/report/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "../printable.h"
#include "figures.h"
#include "markup.h"
#include "sections.h"

namespace headrace::report {

using analysis::cluster::HeatMap;

namespace {

constexpr double kWidth = 800;  // of all columns, however many: words keep their size
constexpr double kLabel = 90;   // in front of the rows
constexpr double kStep = 70;    // room for "step 1000"

/// From which lateness, as a share of the step, a field has which class. Less is not drawn.
struct Lateness {
  double from;
  Literal css_class;
  Literal word;
};
constexpr std::array<Lateness, 4> kLevels = {{{0.02, "l1", "late by 2 % of the step"},
                                              {0.05, "l2", "5 %"},
                                              {0.15, "l3", "15 %"},
                                              {0.40, "l4", "40 % and more"}}};

std::string_view class_of(double late_share) {
  if (std::isnan(late_share)) return "idle";
  std::string_view found;
  for (const Lateness& level : kLevels) {
    if (late_share >= level.from) found = level.css_class.text();
  }
  return found;
}

std::string range_words(const std::string& what, std::pair<std::int64_t, std::int64_t> range) {
  const std::string first = what + " " + std::to_string(range.first);
  return range.first == range.second
             ? first
             : what + "s " + std::to_string(range.first) + " to " + std::to_string(range.second);
}

double field_of(const HeatMap& map) { return kWidth / static_cast<double>(map.columns.size()); }

/// One row; neighbours of one class are one rectangle.
void write_row(Markup& out, const HeatMap& map, std::size_t row, double top, double height) {
  const std::size_t width = map.columns.size();
  const double field = field_of(map);
  for (std::size_t begin = 0; begin < width;) {
    const auto at = [&](std::size_t column) { return map.late_share[row * width + column]; };
    const std::string_view css_class = class_of(at(begin));
    std::size_t end = begin;
    double most = at(begin);
    while (end < width && class_of(at(end)) == css_class) most = std::fmax(most, at(end++));
    if (!css_class.empty()) {
      const auto rect = out.open("rect", {{"class", std::string(css_class)},
                                          {"x", length(kLabel + field * static_cast<double>(begin))},
                                          {"y", length(top)},
                                          {"width", length(field * static_cast<double>(end - begin))},
                                          {"height", length(height)}});
      const std::string steps = range_words("step", {map.columns[begin].first, map.columns[end - 1].second});
      const std::string late =
          std::isnan(most) ? "not recorded" : "late by up to " + figure_words(100 * most) + " % of the step";
      out.leaf("title", range_words("rank", map.rows[row]) + ", " + steps + ": " + late);
    }
    begin = end;
  }
}

void write_map(Markup& out, const std::string& title, const HeatMap& map, double height) {
  if (map.rows.empty() || map.columns.empty()) return;
  const auto section = out.open("section", {{"class", "map"}});
  out.leaf("h2", title);
  const double field = field_of(map);
  const double width = kLabel + field * static_cast<double>(map.columns.size());
  const double tall = height * static_cast<double>(map.rows.size()) + 24;
  {
    const auto box = out.open("div", {{"class", "scroll"}, {"tabindex", "0"}});
    const auto svg = out.open(
        "svg",
        {{"viewBox", "0 0 " + length(width) + " " + length(tall)}, {"role", "img"}, {"aria-label", title}});
    const std::size_t labelled = std::max<std::size_t>(1, map.rows.size() / 16);
    for (std::size_t row = 0; row < map.rows.size(); ++row) {
      const double top = height * static_cast<double>(row);
      if (row % labelled == 0) {
        out.leaf("text",
                 {{"x", length(kLabel - 8)},
                  {"y", length(top + std::max(height, 11.0) - 2)},
                  {"text-anchor", "end"},
                  {"font-size", "11"},
                  {"fill", "currentColor"}},
                 std::to_string(map.rows[row].first));
      }
      write_row(out, map, row, top, height);
    }
    const auto apart = static_cast<std::size_t>(std::ceil(kStep / field));
    for (std::size_t column = 0; column == 0 || column + apart <= map.columns.size();
         column += std::max(apart, map.columns.size() / 8)) {
      out.leaf("text",
               {{"x", length(kLabel + field * static_cast<double>(column))},
                {"y", length(tall - 6)},
                {"font-size", "11"},
                {"fill", "currentColor"}},
               "step " + std::to_string(map.columns[column].first));
    }
  }
}

void write_verdict_of(Markup& out, const ClusterPage& page) {
  const auto section = out.open("section", {{"class", page.is_bad ? "verdict bad" : "verdict good"}});
  {
    const auto line = out.open("div", {{"class", "line"}});
    out.leaf("span", {{"class", "kind"}}, printable(page.kind));
  }
  out.leaf("h1", printable(page.summary));
  if (!page.why.empty()) out.leaf("p", {{"class", "why"}}, printable(page.why));
}

void write_advice_of(Markup& out, const ClusterPage& page) {
  if (page.advice.empty()) return;
  const auto section = out.open("section", {{"class", "advice"}});
  out.leaf("h2", "Do this");
  const auto list = out.open("ol");
  for (const std::string& advice : page.advice) {
    const auto item = out.open("li", {{"class", "first"}});
    out.leaf("p", {{"class", "said"}}, sentence(advice) + ".");
  }
}

void write_levels(Markup& out) {
  std::vector<LegendEntry> entries;
  for (const Lateness& level : kLevels)
    entries.push_back({std::string(level.css_class.text()), std::string(level.word.text()), ""});
  entries.push_back({"idle", "not recorded", ""});
  write_legend(out, entries);
}

}  // namespace

std::string to_html(const ClusterPage& page) {
  return write_page(printable(page.title) + ": " + shortened(page.summary, 80), true, [&](Markup& out) {
    out.leaf("p", printable(page.title));
    write_verdict_of(out, page);
    write_advice_of(out, page);
    if (page.worst.rows.size() < page.map.rows.size())
      write_map(out, "The latest ranks, step by step", page.worst, 16);
    write_map(out, "All ranks", page.map,
              std::clamp(480.0 / static_cast<double>(page.map.rows.size() + 1), 3.0, 16.0));
    if (!page.map.rows.empty()) {
      write_levels(out);
      out.leaf(
          "p", {{"class", "read"}},
          "A rank is late by its own time beyond the median of the ranks in the same step. A row of several "
          "ranks and a column of several steps show the greatest value in them.");
    }
    for (const ClusterTable& table : page.tables) {
      const auto section = out.open("section");
      out.leaf("h2", printable(table.title));
      write_table(out, table.columns, table.rows);
    }
    {
      const auto section = out.open("section");
      out.leaf("h2", "Ranks");
      write_table(out, page.columns, page.rows);
    }
    for (const std::string& remark : page.remarks) out.leaf("p", {{"class", "note"}}, printable(remark));
  });
}

}  // namespace headrace::report
