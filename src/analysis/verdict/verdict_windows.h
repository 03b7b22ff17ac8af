// Where in time the verdict differs from that on the whole run.
#pragma once

#include <vector>

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

/// At most 32, neighbours of one verdict joined. Stretches that chance explains are left out.
std::vector<VerdictWindow> verdict_windows(const Case& facts, const Diagnosis& whole);

}  // namespace headrace::analysis
