// What other tools say of the same files, beside why they are misled.
#include <algorithm>

#include "../printable.h"
#include "figures.h"
#include "sections.h"

namespace headrace::report {

void write_opinions(Markup& out, const Subject& subject) {
  const std::vector<profile::SecondOpinion>& opinions = subject.profile.second_opinions;
  if (opinions.empty()) return;
  constexpr std::size_t kLongest = 1200;
  const auto section = out.open("section", {{"class", "opinions"}});
  out.leaf("h2", "Second opinions");
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < std::min(kMostDrawn, opinions.size()); ++i) {
    const profile::SecondOpinion& each = opinions[i];
    rows.push_back({shortened(each.tool, 60), shortened(each.rule, 60), shortened(each.says, kLongest),
                    each.misled.empty() ? "-" : shortened(each.misled, kLongest)});
  }
  write_table(out, {"tool", "rule", "says", "misled"}, rows);
}

}  // namespace headrace::report
