// The step against a number of workers, with the range of each prediction and what limits then.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/what_if/curve.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::CurvePoint;
using analysis::duration;
using analysis::StepCurve;

namespace {

constexpr double kHeight = 160;

/// Where points stand: values in equal steps across the picture, seconds from 0 at the bottom.
class Plot {
 public:
  Plot(const StepCurve& curve, double step_s, const std::vector<MeasuredStep>& measured) : most_s_(step_s) {
    for (const CurvePoint& point : curve.points) {
      most_s_ = std::max(most_s_, point.then.high_s);
      values_.push_back(point.value);
    }
    for (const MeasuredStep& each : measured) {
      most_s_ = std::max(most_s_, each.step_s);
      values_.push_back(each.value);
    }
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  }
  const std::vector<int>& values() const { return values_; }
  double left(int value) const { return index_of(value) / static_cast<double>(values_.size()); }
  double right(int value) const { return (index_of(value) + 1) / static_cast<double>(values_.size()); }
  std::string x(int value) const { return length(500 * (left(value) + right(value))); }
  std::string y(double seconds) const { return length(kHeight * (1 - fraction(seconds / most_s_))); }
  double most_s() const { return most_s_; }

 private:
  double index_of(int value) const {
    return static_cast<double>(std::lower_bound(values_.begin(), values_.end(), value) - values_.begin());
  }

  std::vector<int> values_;
  double most_s_;
};

std::string range_words(const CurvePoint& point) {
  const auto [low, high] = interval(point.then.low_s, point.then.high_s);
  return low + " to " + high;
}

std::vector<MeasuredStep> drawn_of(const std::vector<MeasuredStep>& measured) {
  std::vector<MeasuredStep> drawn;
  std::copy_if(measured.begin(), measured.end(), std::back_inserter(drawn),
               [](const MeasuredStep& each) { return std::isfinite(each.step_s) && each.step_s > 0; });
  if (drawn.size() > kMaxDrawn) drawn.resize(kMaxDrawn);
  return drawn;
}

void write_measured(Markup& out, const std::vector<MeasuredStep>& measured, const Plot& plot) {
  for (const MeasuredStep& each : measured) {
    const auto group = out.open("g");
    out.leaf("title", fmt::format("{}: measured {}", each.value, duration(each.step_s)));
    out.empty("path", {{"class", "dot measured"},
                       {"d", "M" + plot.x(each.value) + " " + plot.y(each.step_s) + "h0"}});
  }
}

void write_picture(Markup& out, const StepCurve& curve, const Plot& plot, double own_s,
                   const std::vector<MeasuredStep>& measured) {
  const auto svg = out.open("svg", {{"class", "curve"},
                                    {"viewBox", "0 0 1000 160"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", "predicted step against " + brief(curve.parameter)}});
  out.empty("path", {{"class", "grid"}, {"d", "M0 .5H1000M0 80H1000M0 159.5H1000"}});
  std::string band;
  std::string line;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    band += (i == 0 ? "M" : "L") + plot.x(curve.points[i].value) + " " + plot.y(curve.points[i].then.high_s);
    line += (i == 0 ? "M" : "L") + plot.x(curve.points[i].value) + " " + plot.y(curve.points[i].then.step_s);
  }
  for (std::size_t i = curve.points.size(); i-- > 0;)
    band += "L" + plot.x(curve.points[i].value) + " " + plot.y(curve.points[i].then.low_s);
  out.empty("path", {{"class", "band"}, {"d", band + "z"}});
  if (own_s > 0) out.empty("path", {{"class", "own"}, {"d", "M0 " + plot.y(own_s) + "H1000"}});
  out.empty("path", {{"class", "line"}, {"d", line}});
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    const auto group = out.open("g");
    out.leaf("title",
             fmt::format("{}: {} ({})", point.value, duration(point.then.step_s), range_words(point)));
    // A line of no length with round ends is a dot, however the picture is stretched.
    out.empty("path", {{"class", point.value == curve.now ? "dot today" : "dot"},
                       {"d", "M" + plot.x(point.value) + " " + plot.y(point.then.step_s) + "h0"}});
  }
  write_measured(out, measured, plot);
}

void write_values(Markup& out, const StepCurve& curve, const Plot& plot) {
  const auto axis = out.open("div", {{"class", "values"}});
  for (const int value : plot.values()) {
    const bool now = value == curve.now;
    out.leaf("span", {{"class", now ? "today" : ""}}, std::to_string(value) + (now ? " now" : ""));
  }
}

void write_limits(Markup& out, const StepCurve& curve, const Plot& plot) {
  const auto strip = out.open("div", {{"class", "strip"}});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < curve.points.size();) {
    const std::string& limit = curve.points[i].then.limit;
    std::size_t end = i + 1;
    while (end < curve.points.size() && curve.points[end].then.limit == limit) ++end;
    if (std::find(names.begin(), names.end(), limit) == names.end()) names.push_back(limit);
    const auto color = static_cast<std::size_t>(std::find(names.begin(), names.end(), limit) - names.begin());
    const std::string words = brief(limit_words(limit));
    const double left = plot.left(curve.points[i].value);
    const double right = plot.right(curve.points[end - 1].value);
    out.leaf("span",
             {{"class", "v" + std::to_string(color % 4)},
              {"style", "left:" + css_percent(left) + ";width:" + css_percent(right - left)},
              {"title", words}},
             words);
    i = end;
  }
}

void write_figures(Markup& out, const StepCurve& curve) {
  std::vector<std::vector<std::string>> rows;
  for (const CurvePoint& point : curve.points) {
    rows.push_back({std::to_string(point.value), duration(point.then.step_s),
                    point.value == curve.now ? "as recorded" : range_words(point),
                    brief(limit_words(point.then.limit))});
  }
  const auto details = out.open("details");
  out.leaf("summary", "The figures of this picture");
  write_table(out, {"#" + brief(curve.parameter), "#step", "#range", "the limit then"}, rows);
}

}  // namespace

void write_curve(Markup& out, const Subject& subject, const StepCurve* known) {
  const StepCurve curve =
      known != nullptr ? *known : analysis::step_curve(subject.profile, subject.diagnosis);
  const double own_s = subject.profile.sink.compute_s + device_lag_s(subject.diagnosis);
  write_curve_section(
      out, curve, own_s, {},
      "Predicted from this run: the line, in its range. It cannot fall below the training step itself "
      "(dashed). Where it turns flat, something else is the limit.");
}

void write_curve_section(Markup& out, const StepCurve& curve, double own_s,
                         const std::vector<MeasuredStep>& measured, const std::string& read) {
  if (curve.points.empty()) return;
  const std::vector<MeasuredStep> drawn = drawn_of(measured);
  const Plot plot(curve, std::max(own_s, 0.0), drawn);
  if (!(plot.most_s() > 0) || !std::isfinite(plot.most_s())) return;
  const auto section = out.open("section", {{"class", "what-if"}});
  {
    const auto title = out.open("h2");
    out.text("The step with other values of ");
    out.leaf("code", {{"title", whole(curve.parameter)}}, brief(curve.parameter));
  }
  out.leaf("p", {{"class", "read"}}, read);
  {
    const auto grid = out.open("div", {{"class", "time"}});
    {
      const auto labels = out.open("div", {{"class", "axis upright"}});
      out.leaf("span", duration(plot.most_s()));
      out.leaf("span", "0");
    }
    write_picture(out, curve, plot, own_s, drawn);
    out.leaf("span", {{"class", "label"}, {"title", whole(curve.parameter)}}, brief(curve.parameter));
    write_values(out, curve, plot);
    out.leaf("span", {{"class", "label"}}, "the limit then");
    write_limits(out, curve, plot);
  }
  write_figures(out, curve);
}

}  // namespace headrace::report
