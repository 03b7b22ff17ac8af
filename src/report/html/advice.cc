// What to change, and today's step beside the predicted one.
#include <algorithm>
#include <cmath>

#include "../printable.h"
#include "../wording.h"
#include "figures.h"
#include "headrace/analysis/words.h"
#include "sections.h"

namespace headrace::report {

using analysis::Advice;
using analysis::duration;
using profile::as_written;

namespace {

constexpr std::size_t kMaxAdvice = 8;

bool known(const std::optional<double>& value) { return value && std::isfinite(*value) && *value >= 0; }

/// "20.0 ms (15.4 to 24.5 ms)".
std::string predicted_words(const Advice& advice) {
  std::string words = duration(*advice.predicted_step_s);
  if (known(advice.low) && known(advice.high)) {
    const auto [low, high] = interval(*advice.low, *advice.high);
    words += " (" + low + " to " + high + ")";
  }
  return words;
}

struct Bar {
  std::string css_class;
  std::string word;
  std::string figure;
  double seconds = 0;
};

/// One bar with its word before and its figure behind it, and the interval as a line across its end.
void write_row(Markup& out, const Bar& bar, const Advice* interval_of, double scale_s) {
  constexpr double kWidth = 1000;
  const auto at = [&](double seconds) { return length(kWidth * fraction(seconds / scale_s)); };
  out.leaf("span", {{"class", "word"}}, bar.word);
  {
    const auto svg = out.open("svg", {{"class", "prediction"},
                                      {"viewBox", "0 0 1000 20"},
                                      {"preserveAspectRatio", "none"},
                                      {"role", "img"},
                                      {"aria-label", bar.word + " " + bar.figure}});
    out.empty(
        "rect",
        {{"class", bar.css_class}, {"x", "0"}, {"y", "3"}, {"width", at(bar.seconds)}, {"height", "14"}});
    if (interval_of != nullptr && known(interval_of->low) && known(interval_of->high)) {
      const std::string low = at(*interval_of->low);
      const std::string high = at(*interval_of->high);
      out.empty("path", {{"class", "whisker"},
                         {"d", "M" + low + " 10H" + high + "M" + low + " 5v10M" + high + " 5v10"}});
    }
  }
  out.leaf("span", {{"class", "figure"}}, bar.figure);
}

void write_prediction(Markup& out, const Advice& advice, double now_s) {
  const double most_s = std::max({now_s, *advice.predicted_step_s, known(advice.high) ? *advice.high : 0.0});
  if (!(most_s > 0) || !std::isfinite(most_s)) return;
  const auto grid = out.open("div", {{"class", "bars"}});
  write_row(out, {"today", "today", duration(now_s), now_s}, nullptr, most_s);
  write_row(out, {"predicted", "predicted", predicted_words(advice), *advice.predicted_step_s}, &advice,
            most_s);
}

void write_change(Markup& out, const Advice& advice) {
  const auto line = out.open("p", {{"class", advice.parameter.empty() ? "change said" : "change"}});
  if (advice.parameter.empty()) {
    out.text(sentence(advice.text));
  } else {
    out.leaf("code", {{"title", whole(advice.parameter)}}, brief(advice.parameter));
    out.text(" " + brief(as_written(advice.from)) + " ");
    out.leaf("span", {{"class", "to"}, {"aria-label", "to"}}, "→");
    out.text(" ");
    out.leaf("b", brief(as_written(advice.to)));
  }
  if (known(advice.speedup)) {
    out.leaf("span", {{"class", "gain"}}, number(std::min(*advice.speedup, 1e4), 2) + "× as fast");
  }
}

void write_one(Markup& out, const Subject& subject, std::size_t index) {
  const Advice& advice = subject.diagnosis.advice[index];
  const auto item = out.open("li", {{"class", index == 0 ? "first" : "other"}});
  write_change(out, advice);
  if (!advice.parameter.empty() && !advice.text.empty()) {
    out.leaf("p", {{"class", "text"}}, sentence(advice.text) + ".");
  }
  if (!advice.code.empty()) {
    const auto code = out.open("pre");  // a line each: text of an element has none
    for (const std::string& line : code_lines(advice.code)) out.leaf("span", shortened(line, 120));
  }
  std::string after;
  for (const std::string& earlier : advice.after) after += (after.empty() ? "After " : ", ") + brief(earlier);
  if (!after.empty()) out.leaf("p", {{"class", "text"}}, shortened(after, 200) + ".");
  if (known(advice.predicted_step_s)) write_prediction(out, advice, subject.profile.sink.step_s);
  const std::string limit = limit_after(subject.diagnosis, index);
  if (!limit.empty()) {
    out.leaf("p", {{"class", "then"}}, "Then the limit is " + brief(limit) + ".");
  }
}

}  // namespace

void write_advice(Markup& out, const Subject& subject) {
  const std::vector<Advice>& advice = subject.diagnosis.advice;
  if (advice.empty()) return;
  const auto section = out.open("section", {{"class", "advice"}});
  out.leaf("h2", "Do this");
  const auto list = out.open("ol");
  for (std::size_t i = 0; i < std::min(kMaxAdvice, advice.size()); ++i) {
    write_one(out, subject, i);
  }
}

}  // namespace headrace::report
