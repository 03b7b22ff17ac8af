// Changes after the first one: every parameter of the loader is tried in its simulation, on top of
// what is advised already.
#pragma once

#include <vector>

#include "headrace/analysis/simulate/predictor.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// The cheapest next changes, one row each, best first; each row's prediction is for itself and the rows
/// before it (Advice::after). A row gains a tenth of the step at least; the search ends where none does, or
/// the training step is the limit. `base`: the advice that the plan starts from; empty: from the recorded
/// run.
std::vector<Advice> plan_after(const Predictor& predictor, const std::vector<Advice>& base);

}  // namespace headrace::analysis
