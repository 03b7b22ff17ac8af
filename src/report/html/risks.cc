// What will go wrong, beside the verdict.
#include "../wording.h"
#include "sections.h"

namespace headrace::report {

void write_risks(Markup& out, const Subject& subject) {
  if (subject.diagnosis.risks.empty()) return;
  const auto section = out.open("section", {{"class", "evidence"}});
  out.leaf("h2", "Risks");
  const auto list = out.open("dl");
  for (const analysis::Risk& risk : subject.diagnosis.risks) {
    out.leaf("dt", risk_words(risk.kind));
    out.leaf("dd", risk.says + ". " + risk.cure + ".");
  }
}

}  // namespace headrace::report
