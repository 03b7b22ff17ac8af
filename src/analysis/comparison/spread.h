// The mean of a figure over a run, and how far another run like it may be from that.
#pragma once

#include <cstddef>
#include <vector>

namespace headrace::analysis {

struct Mean {
  double value = 0;
  double spread = 0;   ///< standard deviation of the mean / mean
  double degrees = 0;  ///< of freedom of that spread; 0: it is not known
  bool known() const noexcept { return value > 0 && degrees > 0; }
};

/// One stretch of a run: so many steps took so long in all.
struct Stretch {
  double seconds = 0;
  double steps = 0;
};

/// The run's stretches are put together to at most 20 that follow each other, long enough to be independent.
/// `computes`: the share of the time that is spent on a core, whose speed drifts.
Mean mean_of_run(const std::vector<Stretch>& stretches, double computes);

/// Mean over runs.
Mean mean_of_runs(const std::vector<Mean>& runs);

/// Student's t: 99 % of the values are within it. Source: the Cornish-Fisher expansion, Abramowitz and Stegun
/// 26.7.5, to the third order; exact for 1 and 2 degrees of freedom.
double t_of_99_percent(double degrees);

}  // namespace headrace::analysis
