// The page of a comparison.
#include "headrace/report/comparison.h"

#include <algorithm>
#include <cmath>

#include "headrace/analysis/words.h"

#include "../comparison_parts.h"
#include "../printable.h"
#include "figures.h"
#include "markup.h"
#include "sections.h"

namespace headrace::report {

namespace {

/// The average step of both sides, above each other, on one scale.
void write_steps(Markup& out, const analysis::Comparison& comparison) {
  const double longest = std::max(comparison.step.a, comparison.step.b);
  if (!(longest > 0) || !std::isfinite(longest)) return;
  const auto section = out.open("section", {{"class", "step"}});
  out.leaf("h2", "An average step of each");
  const auto side = [&](const std::string& name, double step, double wait, double compute) {
    const std::string says = shortened(printable(name), kLongestName) + ": " + analysis::duration(step);
    out.leaf("p", {{"class", "read"}}, says);
    const auto box = out.open("div", {{"style", "width:" + css_percent(step / longest)}});
    write_bar(out, says,
              {{"starved", fraction(wait / step), "waiting " + analysis::duration(wait)},
               {"compute", fraction(compute / step), "compute " + analysis::duration(compute)}});
  };
  if (comparison.step.a > 0)
    side(comparison.name_a, comparison.step.a, comparison.wait.a, comparison.compute.a);
  if (comparison.step.b > 0)
    side(comparison.name_b, comparison.step.b, comparison.wait.b, comparison.compute.b);
  write_legend(out, {{"starved", "waiting for a batch", ""}, {"compute", "training step", ""}});
}

}  // namespace

std::string to_html(const analysis::Comparison& comparison, bool whole_page) {
  const std::string title = shortened(printable(comparison.name_a), 40) + " and " +
                            shortened(printable(comparison.name_b), 40) + ": " +
                            shortened(headline_of(comparison), 80);
  return write_page(title, whole_page, [&](Markup& out) {
    out.leaf("h1", headline_of(comparison));
    if (const std::string says = explanation(comparison); !says.empty()) out.leaf("p", says);
    for (const std::string& remark : remarks(comparison)) out.leaf("p", {{"class", "note"}}, remark);
    write_steps(out, comparison);
    for (const ComparisonTable& part : tables(comparison)) {
      const auto section = out.open("section");
      out.leaf("h2", part.title);
      std::vector<std::string> titles = part.columns;
      for (std::size_t i = 1; i < titles.size() && part.columns.size() > 3; ++i) titles[i].insert(0, 1, '#');
      write_table(out, titles, part.rows);
    }
  });
}

}  // namespace headrace::report
