// What was set of the loader while its program trained.
#include "../autopilot.h"

#include <algorithm>

#include "../printable.h"
#include "figures.h"
#include "sections.h"

namespace headrace::report {

void write_autopilot(Markup& out, const Subject& subject) {
  const std::vector<profile::ParameterChange>& changes = subject.profile.autopilot;
  if (changes.empty()) return;
  const auto section = out.open("section");
  out.leaf("h2", "Set while it trained");
  const auto list = out.open("ol");
  for (std::size_t i = 0; i < std::min(kMaxRows, changes.size()); ++i)
    out.leaf("li", shortened(change_sentence(changes[i]), kLongestSentence));
}

}  // namespace headrace::report
