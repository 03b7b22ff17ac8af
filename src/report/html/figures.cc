#include "figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "../wording.h"
#include "headrace/analysis/words.h"

namespace headrace::report {

using analysis::percent;

double fraction(double share) { return std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0; }

std::string length(double value) {
  std::string out = fmt::format("{:.1f}", std::isfinite(value) ? std::clamp(value, -1e6, 1e6) : 0.0);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

std::string css_percent(double share) { return fmt::format("{:.2f}%", 100 * fraction(share)); }

std::string level_class(double share) {
  constexpr int kClasses = 5;
  return "l" + std::to_string(std::min(kClasses - 1, static_cast<int>(fraction(share) * kClasses)));
}

std::optional<double> mean_level(const profile::Window& window, const QueueGroup& group) {
  double sum = 0;
  for (const std::size_t queue : group.members) {
    if (queue >= window.queues.size()) return std::nullopt;
    sum += window.queues[queue].mean;
  }
  return sum / static_cast<double>(group.members.size());
}

std::string level_words(const profile::QueueProfile& queue) {
  std::string words = number(queue.mean, 1);
  return queue.capacity > 0 ? words + " of " + std::to_string(queue.capacity) : words + ", unbounded";
}

std::string figure_words(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

std::string brief(const std::string& name) { return shortened(name, 40); }
std::string whole(const std::string& name) { return shortened(name, 1000); }

std::string sentence(const std::string& text) {
  std::string out = shortened(text, 600);
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

void write_bar(Markup& out, const std::string& label, const std::vector<BarPart>& parts) {
  constexpr double kWidth = 1000;
  const auto svg = out.open("svg", {{"class", "bar"},
                                    {"viewBox", "0 0 1000 10"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", label}});
  double x = 0;
  for (const BarPart& part : parts) {
    const double wide = std::min(kWidth - x, kWidth * fraction(part.share));
    if (wide < 0.05) continue;
    const auto rect = out.open(
        "rect",
        {{"class", part.css_class}, {"x", length(x)}, {"y", "0"}, {"width", length(wide)}, {"height", "10"}});
    if (!part.title.empty()) out.leaf("title", part.title);
    x += wide;
  }
}

void write_legend(Markup& out, const std::vector<LegendEntry>& entries) {
  const auto list = out.open("ul", {{"class", "legend"}});
  for (const LegendEntry& entry : entries) {
    const auto item = out.open("li");
    out.leaf("i", {{"class", entry.css_class}}, "");
    out.text(entry.word);
    if (!entry.figure.empty()) out.leaf("b", entry.figure);
  }
}

std::vector<BarPart> state_parts(const profile::States& states) {
  return {{"busy", states.busy, "busy " + percent(states.busy)},
          {"waits", states.blocked_in, "waits for input " + percent(states.blocked_in)},
          {"blocked", states.blocked_out, "blocked " + percent(states.blocked_out)},
          {"idle", states.idle, "idle " + percent(states.idle)}};
}

void write_table(Markup& out, const std::vector<std::string>& titles,
                 const std::vector<std::vector<std::string>>& rows) {
  const auto box = out.open("div", {{"class", "scroll"}, {"tabindex", "0"}});
  const auto table = out.open("table");
  const auto is_number = [&](std::size_t column) { return titles[column].starts_with('#'); };
  {
    const auto head = out.open("thead");
    const auto row = out.open("tr");
    for (std::size_t i = 0; i < titles.size(); ++i) {
      out.leaf("th", {{"scope", "col"}, {"class", is_number(i) ? "number" : "word"}},
               titles[i].substr(is_number(i) ? 1 : 0));
    }
  }
  const auto body = out.open("tbody");
  for (const std::vector<std::string>& cells : rows) {
    const auto row = out.open("tr");
    for (std::size_t i = 0; i < std::min(titles.size(), cells.size()); ++i) {
      if (is_number(i)) {
        out.leaf("td", {{"class", "number"}}, cells[i]);
      } else {
        out.leaf("td", cells[i]);
      }
    }
  }
}

}  // namespace headrace::report
