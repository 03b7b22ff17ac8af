// What will go wrong, beside the verdict: none of it is the bottleneck now.
#pragma once

#include <vector>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Every risk that the profile shows, in the order of `RiskKind`; empty if it shows none.
std::vector<Risk> risks_of(const profile::Profile& profile, const RiskThresholds& thresholds = {});

}  // namespace headrace::analysis
