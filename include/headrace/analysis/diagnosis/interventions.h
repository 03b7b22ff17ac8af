// What the step would be if an operator of the input cost nothing: the recorded run is simulated without each of them.
#pragma once

#include <vector>

#include "headrace/analysis/diagnosis/predictor.h"

namespace headrace::analysis {

struct Interventions {
  double as_is_s = 0;  ///< the simulated step of the unchanged run; 0: it could not be simulated
  /// Per operator of the profile: the step without it; `as_is_s` where that is not known.
  std::vector<double> without_s;

  /// Of the unchanged step, 0 to 1.
  double gain(int op) const noexcept;
  /// More than simulations of the same run differ by.
  bool gains(int op) const noexcept;
};

/// An absence counts the cores, the interpreter lock and the order in which operators wait for each other, which
/// neither demand nor CPU time alone does.
Interventions try_interventions(const Predictor& predictor);

}  // namespace headrace::analysis
