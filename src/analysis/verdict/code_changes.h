// Advice to change the program where no parameter helps: the recording shows how the operator makes its items.
#pragma once

#include <vector>

#include "headrace/analysis/verdict/causes/cause.h"

namespace headrace::analysis {

/// For the operator that is named. Without predictions: what the changed code takes is not recorded.
std::vector<Advice> advise_code_changes(const Case& facts);

}  // namespace headrace::analysis
