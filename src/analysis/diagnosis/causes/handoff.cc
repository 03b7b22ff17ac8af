// Batches are ready, yet fetching them costs a good part of the step.
#include "sentences.h"

namespace headrace::analysis {
namespace {

std::optional<Finding> judge(const Case& facts) {
  if (!facts.gate.handoff_only) return std::nullopt;
  Finding finding;
  finding.op = "handoff";
  finding.headline =
      "handing over finished batches takes " + percent(facts.gate.floor_share) + " of every step";
  finding.evidence = cause_evidence("batches were ready, and still took " +
                                        duration(facts.gate.floor_share * facts.gate.step_s) + " to fetch",
                                    {{"handoff_floor_s", facts.profile.sink.handoff_floor_s},
                                     {"ready_share", facts.profile.sink.ready_share}});
  finding.advice.push_back(in_words("hand over less often or less: larger batches, fewer bytes, no copies"));
  finding.certainty = 0.8;
  return finding;
}

}  // namespace

extern const Cause kHandoff;
const Cause kHandoff{"handoff", false, judge};

}  // namespace headrace::analysis
