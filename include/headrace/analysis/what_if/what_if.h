// "What if I had set it to that?", asked of a recorded run.
//
//     WhatIf then = what_if(profile, {{"decode.workers", "4"}, {"decoded.capacity", "8"}});
//     if (then.known) printf("%.1f ms", 1e3 * then.step_s);
#pragma once

#include <string>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// A parameter's name and value, as its user writes them.
struct Assignment {
  std::string parameter;
  std::string value;
};

struct WhatIf {
  bool known = false;
  std::string reason;  ///< why it is not known
  double step_s = 0;   ///< predicted; low_s <= step_s <= high_s
  double low_s = 0;
  double high_s = 0;
  std::string bottleneck;  ///< what limits then: an operator's name, "sink", or "cpu"
};

/// All assignments made together, simulated. Deterministic; about a millisecond. Throws UsageError for a
/// parameter that the loader does not have (the message lists those that it has) and for a value out of
/// range.
WhatIf what_if(const profile::Profile& profile, const std::vector<Assignment>& assignments);

}  // namespace headrace::analysis
