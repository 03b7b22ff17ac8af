// The page of a search for parameters: predicted steps against measured ones.
#include "headrace/report/tuning.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "markup.h"
#include "sections.h"

namespace headrace::report {

using analysis::duration;

namespace {

/// Room beyond the largest value.
constexpr double kMargin = 1.06;
/// Measured steps are drawn with an interval of this many standard errors.
constexpr double kErrors = 2;

bool is_drawn(const TuningPoint& point) {
  const double all = point.predicted_s + point.low_s + point.high_s + point.measured_s + point.error_s;
  return std::isfinite(all) && point.predicted_s > 0 && point.measured_s > 0;
}

/// The same scale in both directions, from 0, so that the diagonal is where both are equal.
class Square {
 public:
  explicit Square(const std::vector<TuningPoint>& points) {
    for (const TuningPoint& point : points)
      most_s_ = std::max({most_s_, point.high_s, point.predicted_s, high_of(point)});
    most_s_ *= kMargin;
  }
  static double high_of(const TuningPoint& point) { return point.measured_s + kErrors * point.error_s; }
  static double low_of(const TuningPoint& point) { return point.measured_s - kErrors * point.error_s; }
  double share(double seconds) const { return fraction(seconds / most_s_); }
  std::string x(double seconds) const { return length(1000 * share(seconds)); }
  std::string y(double seconds) const { return length(1000 * (1 - share(seconds))); }
  double most_s() const { return most_s_; }

 private:
  double most_s_ = 0;
};

std::string words_of(const TuningPoint& point) {
  return fmt::format("{}: predicted {} ({} to {}), measured {}", whole(point.label),
                     duration(point.predicted_s), duration(point.low_s), duration(point.high_s),
                     duration(point.measured_s));
}

void write_ranges(Markup& out, const std::vector<TuningPoint>& points, const Square& square) {
  const auto svg = out.open("svg", {{"class", "curve"},
                                    {"viewBox", "0 0 1000 1000"},
                                    {"preserveAspectRatio", "none"},
                                    {"role", "img"},
                                    {"aria-label", "measured step against predicted step"}});
  out.empty("path", {{"class", "grid"}, {"d", "M0 0H1000V1000H0zM0 500H1000M500 0V1000"}});
  out.empty("path", {{"class", "own"}, {"d", "M0 1000L1000 0"}});
  for (const TuningPoint& point : points) {
    const std::string x = square.x(point.predicted_s);
    const std::string y = square.y(point.measured_s);
    out.empty("path",
              {{"class", "range"},
               {"d", "M" + square.x(point.low_s) + " " + y + "H" + square.x(point.high_s) + "M" + x + " " +
                         square.y(Square::low_of(point)) + "V" + square.y(Square::high_of(point))}});
  }
}

std::string number_of(std::size_t index) { return std::to_string(index + 1); }

/// The points themselves, with their numbers. (Text of a stretched picture would be stretched, too.)
void write_numbers(Markup& out, const std::vector<TuningPoint>& points, const Square& square) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    out.leaf("span",
             {{"style", "left:" + css_percent(square.share(points[i].predicted_s)) +
                            ";top:" + css_percent(1 - square.share(points[i].measured_s))},
              {"title", words_of(points[i])}},
             number_of(i));
  }
}

void write_names(Markup& out, const std::vector<TuningPoint>& points) {
  std::vector<LegendEntry> names;
  for (std::size_t i = 0; i < points.size(); ++i)
    names.push_back({"busy", number_of(i), brief(points[i].label)});
  write_legend(out, names);
}

void write_picture(Markup& out, const std::vector<TuningPoint>& points) {
  const Square square(points);
  const auto section = out.open("section", {{"class", "tuning"}});
  out.leaf("h2", "Predicted and measured");
  out.leaf("p", {{"class", "read"}},
           "A point is a change that was tried. On the dashed line, the measured step is the predicted one; "
           "below it, the change was faster than predicted. The horizontal line is the interval of the "
           "prediction, the vertical one the measured step with two standard errors. A prediction was right "
           "where the horizontal line crosses the dashed one.");
  write_names(out, points);
  const auto grid = out.open("div", {{"class", "time"}});
  {
    const auto labels = out.open("div", {{"class", "axis upright"}});
    out.leaf("span", duration(square.most_s()));
    out.leaf("span", "measured step");
    out.leaf("span", "0");
  }
  {
    const auto plot = out.open("div", {{"class", "scatter"}});
    write_ranges(out, points, square);
    write_numbers(out, points, square);
  }
  out.leaf("span", "");
  const auto labels = out.open("div", {{"class", "axis"}});
  out.leaf("span", "0");
  out.leaf("span", "predicted step");
  out.leaf("span", duration(square.most_s()));
}

}  // namespace

std::string to_html(const TuningPage& page, bool whole_page) {
  return write_page(shortened(page.headline, 80), whole_page, [&](Markup& out) {
    out.leaf("h1", printable(page.headline));
    out.leaf("p", printable(page.about));
    std::vector<TuningPoint> drawn;
    std::copy_if(page.points.begin(), page.points.end(), std::back_inserter(drawn), is_drawn);
    if (drawn.size() > kMaxDrawn) drawn.resize(kMaxDrawn);
    write_curve_section(
        out, page.curve, 0, page.measured,
        "Predicted from the recording of the start: the line with small dots, in its range. The "
        "large dots are the measured steps of trials that changed this parameter only.");
    if (!drawn.empty()) write_picture(out, drawn);
    const auto section = out.open("section");
    out.leaf("h2", "Trials");
    write_table(out, page.columns, page.rows);
    for (const std::string& remark : page.remarks) out.leaf("p", {{"class", "note"}}, printable(remark));
  });
}

}  // namespace headrace::report
