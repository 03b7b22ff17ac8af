#include "headrace/report/tuning.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace headrace::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TuningPage tuning_page_of(std::vector<TuningPoint> points) {
  return {"TUNED 100 ms -> 50 ms",      "<b>train.py</b>",  std::move(points),
          {"change", "#measured step"}, {{"a<b", "50 ms"}}, {"ended: a & b"}};
}

bool has(const std::string& html, const std::string& text) { return html.find(text) != std::string::npos; }

TEST(TuningPage, APredictionThatWasRightIsOnTheDiagonal) {
  // The scale goes to 100 ms * 1.06, so that 50 ms is at 471.7 of 1000 from the left and from the bottom.
  const std::string html = to_html(tuning_page_of({{"workers 1 -> 2", 0.05, 0.04, 0.1, 0.05, 0.005}}));
  EXPECT_TRUE(has(html, "left:47.17%;top:52.83%"));
  EXPECT_TRUE(has(html, "M377.4 528.3H943.4M471.7 622.6V434"));
  EXPECT_TRUE(
      has(html, "title=\"workers 1 -&gt; 2: predicted 50.0 ms (40.0 ms to 100 ms), measured 50.0 ms\">1<"));
}

TEST(TuningPage, EverythingIsEscapedAndNothingIsLoaded) {
  const std::string html = to_html(tuning_page_of({{"<img onerror=x>", 0.05, 0.04, 0.06, 0.05, 0}}));
  EXPECT_FALSE(has(html, "<img"));
  EXPECT_FALSE(has(html, "<b>train"));
  EXPECT_FALSE(has(html, "<script"));
  EXPECT_FALSE(has(html, "http:"));
  EXPECT_TRUE(has(html, "ended: a &amp; b"));
}

TEST(TuningPage, WhatIsUnknownIsOnlyInTheTable) {
  for (const TuningPoint& point :
       {TuningPoint{"start", kNan, kNan, kNan, 0.1, 0.01}, TuningPoint{"x", 0, 0, 0, 0.1, 0},
        TuningPoint{"x", 0.1, 0.1, 0.1, std::numeric_limits<double>::infinity(), 0}}) {
    const std::string html = to_html(tuning_page_of({point}));
    EXPECT_FALSE(has(html, "<svg"));
    EXPECT_TRUE(has(html, "a&lt;b"));
  }
}

TEST(TuningPage, MeasuredStepsAreOnThePredictedCurve) {
  TuningPage page = tuning_page_of({});
  page.curve = {
      "workers", 1, {{1, {0.1, 0.08, 0.1, "map", true, ""}}, {2, {0.05, 0.04, 0.06, "map", true, ""}}}};
  page.measured = {{1, 0.1}, {2, 0.075}, {7, 0.02}, {2, kNan}};
  const std::string html = to_html(page);
  // In the middle of each third; 0 is at 160.
  EXPECT_TRUE(has(html, "class=\"dot measured\" d=\"M166.7 0h0\""));
  EXPECT_TRUE(has(html, "class=\"dot measured\" d=\"M500 40h0\""));
  EXPECT_TRUE(has(html, "class=\"dot measured\" d=\"M833.3 128h0\""));  // without a prediction
  EXPECT_TRUE(has(html, "2: measured 75.0 ms"));
  EXPECT_TRUE(has(html, "class=\"line\" d=\"M166.7 0L500 80\""));
}

TEST(TuningPage, APartOfAnotherPageHasNoHead) {
  const std::string html = to_html(tuning_page_of({}), false);
  EXPECT_TRUE(html.starts_with("<div class=\"headrace\">"));
  EXPECT_FALSE(has(html, "<html"));
}

}  // namespace
}  // namespace headrace::report
