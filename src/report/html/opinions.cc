// What other tools say of the same files, beside why they are misled.
#include <algorithm>

#include "../printable.h"
#include "sections.h"

namespace headrace::report {

void write_opinions(Markup& out, const Subject& subject) {
  const std::vector<profile::SecondOpinion>& opinions = subject.profile.second_opinions;
  if (opinions.empty()) return;
  constexpr std::size_t kLongest = 1200;
  const auto section = out.open("section", {{"class", "evidence"}});
  out.leaf("h2", "Second opinions");
  const auto list = out.open("dl");
  for (std::size_t i = 0; i < std::min(kMaxDrawn, opinions.size()); ++i) {
    const profile::SecondOpinion& each = opinions[i];
    out.leaf("dt", shortened(each.tool, 60) + ", " + shortened(each.rule, 60));
    out.leaf("dd", shortened(each.says, kLongest) +
                       (each.misled.empty() ? "" : " Misled: " + shortened(each.misled, kLongest) + "."));
  }
}

}  // namespace headrace::report
