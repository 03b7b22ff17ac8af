// The run over time: how long the loop waited, what each operator and queue did, where the verdict differs.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "../loader_sections.h"
#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/queue_words.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::counted;
using analysis::duration;
using analysis::percent;
using profile::Window;

namespace {

constexpr std::size_t kMaxVerdicts = 48;
/// Rows of operators, and of queues.
constexpr std::size_t kMaxOfKind = 16;

/// The position of a moment of the run in the picture, 0 to 1.
class TimeAxis {
 public:
  explicit TimeAxis(const std::vector<Window>& windows) : begin_(windows.front().start_s), end_(begin_) {
    for (const Window& window : windows)
      end_ = std::max(end_, std::isfinite(window.end_s) ? window.end_s : end_);
    if (!std::isfinite(begin_)) begin_ = end_;
  }
  double at(double seconds) const {
    return end_ > begin_ ? fraction((seconds - begin_) / (end_ - begin_)) : 0;
  }
  double begin() const { return begin_; }
  double end() const { return end_; }

 private:
  double begin_;
  double end_;
};

/// Without the windows before and after this loader's own loop: the clock of the run goes on for others.
std::vector<Window> of_the_loop(const std::vector<Window>& windows) {
  const auto is_active = [](const Window& window) {
    return window.steps > 0 || window.wait_s > 0 || window.compute_s > 0;
  };
  const auto first = std::find_if(windows.begin(), windows.end(), is_active);
  const auto last = std::find_if(windows.rbegin(), windows.rend(), is_active).base();
  if (first >= last) return {};
  return {first, std::min(last, first + static_cast<std::ptrdiff_t>(kMaxWindows))};
}

std::string when(double start_s, double end_s) {
  const auto [from, to] = interval(start_s, end_s);
  return from + " to " + to;
}

double share_of(double seconds, const Window& window) {
  const double width = window.end_s - window.start_s;
  return width > 0 ? fraction(seconds / width) : 0;
}

void write_waits(Markup& out, const std::vector<Window>& windows, const TimeAxis& axis) {
  constexpr double kHeight = 100;
  const auto svg = out.open("svg", {{"class", "waits-over-time"},
                                    {"viewBox", "0 0 1000 100"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", "share of each window that the training loop waited"}});
  out.empty("path", {{"class", "grid"}, {"d", "M0 .5H1000M0 50H1000M0 99.5H1000"}});
  for (const Window& window : windows) {
    const double x = 1000 * axis.at(window.start_s);
    const double wide = 1000 * axis.at(window.end_s) - x;
    if (!(wide > 0)) continue;
    const double wait = kHeight * share_of(window.wait_s, window);
    const double starved = std::min(wait, kHeight * share_of(window.starved_s, window));
    const auto group = out.open("g");
    out.leaf("title", fmt::format("{}: {}, waited {}, starved {}", when(window.start_s, window.end_s),
                                  counted(static_cast<double>(window.steps), "step"),
                                  percent(share_of(window.wait_s, window)),
                                  percent(share_of(window.starved_s, window))));
    const auto rect = [&](Literal css_class, double from, double high) {
      out.empty("rect", {{"class", std::string(css_class.text())},
                         {"x", length(x)},
                         {"y", length(kHeight - from - high)},
                         {"width", length(wide)},
                         {"height", length(high)}});
    };
    rect("space", 0, kHeight);
    if (starved > 0) rect("starved", 0, starved);
    if (wait > starved) rect("floor", starved, wait - starved);
  }
}

/// One row of cells, coloured by level; neighbours of one colour are one piece of a path.
void write_levels(Markup& out, const std::vector<Window>& windows, const TimeAxis& axis,
                  const std::string& label, const std::function<double(const Window&)>& share) {
  std::array<std::string, 5> paths;
  for (std::size_t i = 0; i < windows.size();) {
    const std::string level = level_class(share(windows[i]));
    std::size_t end = i + 1;
    while (end < windows.size() && level_class(share(windows[end])) == level) ++end;
    paths[static_cast<std::size_t>(level[1] - '0')] +=
        fmt::format("M{0} 0H{1}V1H{0}z", length(1000 * axis.at(windows[i].start_s)),
                    length(1000 * axis.at(windows[end - 1].end_s)));
    i = end;
  }
  const auto svg = out.open("svg", {{"class", "levels"},
                                    {"viewBox", "0 0 1000 1"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", label}});
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].empty()) out.empty("path", {{"class", "l" + std::to_string(i)}, {"d", paths[i]}});
  }
}

/// Stretches with a verdict of their own, each with its name; one colour per operator.
void write_verdicts(Markup& out, const Subject& subject, const TimeAxis& axis) {
  std::vector<std::string> names;
  const auto strip = out.open("div", {{"class", "strip"}});
  for (std::size_t i = 0; i < std::min(kMaxVerdicts, subject.diagnosis.windows.size()); ++i) {
    const analysis::VerdictWindow& window = subject.diagnosis.windows[i];
    const double left = axis.at(window.start_s);
    const double wide = axis.at(window.end_s) - left;
    const std::string name =
        window.op.value_or(analysis::is_bound(window.kind) ? std::string(name_of(window.kind)) : "");
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    const auto color =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()) % 4;
    out.leaf("span",
             {{"class", name.empty() ? "calm" : "v" + std::to_string(color)},
              {"style", "left:" + css_percent(left) + ";width:" + css_percent(wide)},
              {"title", when(window.start_s, window.end_s) + ": " + shortened(window_words(window), 1000)}},
             window.op ? brief(*window.op) : window_words(window));
  }
}

void write_verdict_list(Markup& out, const Subject& subject) {
  const std::vector<analysis::VerdictWindow>& windows = subject.diagnosis.windows;
  const auto details = out.open("details");
  out.leaf("summary", "Where the verdict differs");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(kMaxVerdicts, windows.size()); ++i) {
    rows.push_back({when(windows[i].start_s, windows[i].end_s), shortened(window_words(windows[i]), 80)});
  }
  if (rows.size() < windows.size()) {
    rows.push_back({"", "and " + counted(static_cast<double>(windows.size() - rows.size()), "more change")});
  }
  write_table(out, {"from, to", "the training loop"}, rows);
}

void write_label(Markup& out, const std::string& name, const std::string& title, bool here = false) {
  out.leaf("span", {{"class", here ? "label here" : "label"}, {"title", title}}, name);
}

}  // namespace

void write_time(Markup& out, const Subject& subject) {
  const profile::Profile& profile = subject.profile;
  const std::vector<Window> windows = of_the_loop(profile.windows);
  if (windows.size() < 2) return;
  const TimeAxis axis(windows);
  const std::vector<QueueGroup> queues = queue_groups(profile.queues);
  const auto section = out.open("section", {{"class", "over-time"}});
  out.leaf("h2", "The run over time");
  write_legend(out, {{"starved", "starved", ""},
                     {"floor", "hand-off", ""},
                     {"l0", "operator idle, queue empty", ""},
                     {"l4", "operator busy, queue full", ""}});
  {
    const auto grid = out.open("div", {{"class", "time"}});
    write_label(out, "waits, %", "share of the time that the training loop waited for a batch");
    write_waits(out, windows, axis);
    if (!subject.diagnosis.windows.empty()) {
      write_label(out, "verdict", "where the verdict differs from that of the whole run");
      write_verdicts(out, subject, axis);
    }
    std::size_t rows = 0;
    for (std::size_t i = 0; i < profile.operators.size(); ++i) {
      const profile::OperatorProfile& op = profile.operators[i];
      const bool here = subject.is_bottleneck(op);
      const bool known = std::any_of(windows.begin(), windows.end(), [i](const Window& window) {
        return i < window.operators.size() && window.operators[i].busy_share >= 0;
      });
      if (!known) continue;
      if (rows++ >= kMaxOfKind && !here) continue;
      write_label(out, brief(op.name), whole(op.name) + ": busy share of its workers", here);
      write_levels(out, windows, axis, "busy share of " + brief(op.name) + " over time",
                   [i](const Window& window) {
                     return i < window.operators.size() ? std::max(0.0, window.operators[i].busy_share) : 0;
                   });
    }
    for (std::size_t i = 0; i < std::min(kMaxOfKind, queues.size()); ++i) {
      const QueueGroup& group = queues[i];
      const auto capacity =
          static_cast<double>(std::max<std::int64_t>(1, profile.queues[group.members.front()].capacity));
      const bool behind = group.members.size() == 1 &&
                          analysis::is_named_after_producer(profile.queues[group.members.front()]);
      write_label(out, brief(behind ? group.name + " ->" : group.name),
                  whole(group.name) + ": level of the queue");
      write_levels(out, windows, axis, "level of " + brief(group.name) + " over time",
                   [&](const Window& window) { return mean_level(window, group).value_or(0) / capacity; });
    }
    write_label(out, "", "");
    const auto scale = out.open("div", {{"class", "axis"}});
    out.leaf("span", duration(axis.begin()));
    out.leaf("span", duration((axis.begin() + axis.end()) / 2));
    out.leaf("span", duration(axis.end()));
  }
  if (profile.operators.size() > kMaxOfKind || queues.size() > kMaxOfKind) {
    out.leaf("p", {{"class", "read"}},
             "Drawn are the first " + std::to_string(kMaxOfKind) + " of each kind.");
  }
  if (!subject.diagnosis.windows.empty()) write_verdict_list(out, subject);
}

}  // namespace headrace::report
