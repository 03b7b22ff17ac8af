// The page of a comparison.
#include "headrace/report/comparison.h"

#include "../comparison_parts.h"
#include "../printable.h"
#include "figures.h"
#include "markup.h"
#include "sections.h"

namespace headrace::report {

std::string to_html(const analysis::Comparison& comparison) {
  return write_page("A and B: " + shortened(headline_of(comparison), 80), true, [&](Markup& out) {
    out.leaf("h1", headline_of(comparison));
    if (const std::string says = explanation(comparison); !says.empty()) out.leaf("p", says);
    for (const std::string& remark : remarks(comparison)) out.leaf("p", {{"class", "note"}}, remark);
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
