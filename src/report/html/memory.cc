// The page of a memory snapshot.
#include "headrace/report/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "../printable.h"
#include "figures.h"
#include "markup.h"
#include "sections.h"

namespace headrace::report {
namespace {

constexpr double kAreaHeight = 220;
constexpr std::array<Literal, 8> kPlaceClasses = {"l4", "v1", "l2", "v2", "l3", "v3", "l1", "idle"};

std::size_t drawn_places(const MemoryLevels& levels) {
  return std::min({levels.places.size(), levels.held_bytes.size(), kPlaceClasses.size()});
}

/// How many moments all drawn places have.
std::size_t moments_of(const MemoryLevels& levels) {
  std::size_t moments = kMaxWindows;
  for (std::size_t place = 0; place < drawn_places(levels); ++place)
    moments = std::min(moments, levels.held_bytes[place].size());
  return drawn_places(levels) == 0 ? 0 : moments;
}

/// Areas on each other, the first place at the bottom. Each moment is a step as wide as the others.
void write_areas(Markup& out, const MemoryLevels& levels, std::size_t moments) {
  std::vector<double> below(moments);
  double highest = 0;
  for (std::size_t at = 0; at < moments; ++at) {
    double sum = 0;
    for (std::size_t place = 0; place < drawn_places(levels); ++place)
      sum += std::max(0.0, levels.held_bytes[place][at]);
    highest = std::max(highest, sum);
  }
  const auto svg =
      out.open("svg", {{"class", "areas"},
                       {"viewBox", "0 0 1000 220"},
                       {"preserveAspectRatio", "none"},
                       {"role", "img"},
                       {"aria-label", "memory of " + printable(levels.title) + " over its events"}});
  const auto x = [&](std::size_t at) {
    return length(1000 * static_cast<double>(at) / static_cast<double>(moments));
  };
  const auto y = [&](double bytes) { return length(kAreaHeight * (1 - fraction(bytes / highest))); };
  for (std::size_t place = 0; place < drawn_places(levels); ++place) {
    std::string back;
    std::string line;
    for (std::size_t at = 0; at < moments; ++at) {
      const double above = below[at] + std::max(0.0, levels.held_bytes[place][at]);
      line += (at == 0 ? "M0 " : "V") + y(above) + "H" + x(at + 1);
      back.insert(0, "V" + y(below[at]) + "H" + x(at));
      below[at] = above;
    }
    const auto area =
        out.open("path", {{"class", std::string(kPlaceClasses[place].text())}, {"d", line + back + "z"}});
    out.leaf("title", whole(levels.places[place]));
  }
}

void write_levels_of(Markup& out, const MemoryLevels& levels) {
  const std::size_t moments = moments_of(levels);
  if (moments == 0) return;
  const auto section = out.open("section");
  out.leaf("h2", "Memory of " + printable(levels.title) + " over its events");
  out.leaf("p", {{"class", "read"}},
           "Bytes that the program asked for, by the innermost function outside of PyTorch that asked for "
           "them. Each "
           "step shows the highest level of a part of the events.");
  std::vector<LegendEntry> legend;
  for (std::size_t place = 0; place < drawn_places(levels); ++place)
    legend.push_back({std::string(kPlaceClasses[place].text()), brief(levels.places[place]), ""});
  write_legend(out, legend);
  const auto grid = out.open("div", {{"class", "time"}});
  {
    const auto labels = out.open("div", {{"class", "axis upright"}});
    out.leaf("span", printable(levels.highest));
    out.leaf("span", "0");
  }
  write_areas(out, levels, moments);
  out.leaf("span", "");
  const auto labels = out.open("div", {{"class", "axis"}});
  out.leaf("span", printable(levels.begins));
  out.leaf("span", printable(levels.ends));
}

}  // namespace

std::string to_html(const MemoryPage& page) {
  const std::string heading = page.findings.empty() ? page.title : page.findings.front();
  return write_page(shortened(heading, 80), true, [&](Markup& out) {
    out.leaf("p", printable(page.title));
    {
      const auto section = out.open("section", {{"class", page.is_bad ? "verdict bad" : "verdict good"}});
      out.leaf("h1", {{"class", "sentence"}}, printable(heading));
      for (std::size_t i = 1; i < page.findings.size(); ++i)
        out.leaf("p", {{"class", "why"}}, printable(page.findings[i]));
    }
    for (const MemoryLevels& levels : page.devices) write_levels_of(out, levels);
    for (const ClusterTable& table : page.tables) {
      const auto section = out.open("section");
      out.leaf("h2", printable(table.title));
      write_table(out, table.columns, table.rows);
    }
    for (const std::string& remark : page.remarks) out.leaf("p", {{"class", "note"}}, printable(remark));
  });
}

}  // namespace headrace::report
