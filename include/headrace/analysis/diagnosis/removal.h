// What the step would be without one of its operators.
#pragma once

#include <optional>

#include "headrace/analysis/diagnosis/predictor.h"

namespace headrace::analysis {

struct Removal {
  int index = -1;                ///< of the operator
  std::optional<double> step_s;  ///< without it; none: not predicted
};

/// The operator whose absence gains most, from a simulation of each. It counts the cores, the interpreter lock and
/// the order in which operators wait for each other, which neither demand nor CPU time alone does. `index` keeps its
/// place unless another one gains clearly more, and where nothing is predicted.
Removal most_gained_by_removing(const Predictor& predictor, int index);

}  // namespace headrace::analysis
