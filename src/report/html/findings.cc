// What is wrong with the data and the training.
#include <algorithm>

#include "../printable.h"
#include "sections.h"

namespace headrace::report {

void write_findings(Markup& out, const Subject& subject) {
  const std::vector<profile::Finding>& findings = subject.profile.findings;
  if (findings.empty()) return;
  constexpr std::size_t kLongest = 1200;
  const auto section = out.open("section", {{"class", "evidence"}});
  out.leaf("h2", "Findings in data and training");
  const auto list = out.open("dl");
  for (std::size_t i = 0; i < std::min(kMaxDrawn, findings.size()); ++i) {
    const profile::Finding& each = findings[i];
    out.leaf("dt", shortened(each.severity, 20) + ": " + shortened(each.kind, 60));
    out.leaf("dd", shortened(each.says, kLongest) + (each.cure.empty() ? "" : ". ") +
                       shortened(each.cure, kLongest) + ".");
  }
}

}  // namespace headrace::report
