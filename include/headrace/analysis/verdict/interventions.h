// Step times if an operator of the input cost nothing: the recorded run is simulated without each of them.
#pragma once

#include <vector>

#include "headrace/analysis/simulate/predictor.h"

namespace headrace::analysis {

struct Interventions {
  double as_is_s = 0;  ///< the simulated step of the unchanged run; 0: it could not be simulated
  double even_s = 0;   ///< the step if all items of every operator, and all steps, took their mean
  double free_s = 0;   ///< the step if all of them cost nothing
  /// Per operator of the profile: the step without it; `as_is_s` where that is not known.
  std::vector<double> without_s;

  bool known() const noexcept { return as_is_s > 0; }
  /// Share of the unchanged step saved by `step_s`, 0 to 1.
  double gain_of(double step_s) const noexcept { return known() ? 1 - step_s / as_is_s : 0; }
  double gain_of_all() const noexcept { return gain_of(free_s); }
  double gain_of_evenness() const noexcept { return gain_of(even_s); }
  /// Gain of one operator's absence.
  double gain(int op) const noexcept;
  /// More than simulations of the same run differ by.
  bool gains(int op) const noexcept;
};

/// Limits of more workers of an operator: the step with four times as many as the machine is, without an
/// interpreter lock, and with as many cores as anybody could use.
struct MoreWorkers {
  static constexpr int kTimes = 4;

  double unchanged_s = 0;  ///< the simulated step of the unchanged run; 0: it could not be simulated
  double as_is_s = 0;      ///< beside others that give way
  double without_lock_s = 0;
  double with_cores_s = 0;
  double with_both_s = 0;  ///< cores and no lock, where neither alone is what they lack; else 0

  bool known() const noexcept { return unchanged_s > 0; }
  bool lack_cores() const noexcept { return lack(with_cores_s); }
  /// Beside others that hold the cores, the end of the lock alone gains little, and cores beside the lock none.
  bool lack_the_lock() const noexcept {
    if (with_both_s > 0)
      return lack(with_both_s) && unchanged_s - with_cores_s < kLittle * (unchanged_s - with_both_s);
    return lack(without_lock_s) && without_lock_s <= with_cores_s;
  }

 private:
  static constexpr double kLittle = 1.0 / 3;  ///< of what is gained with what they lack

  bool lack(double with_s) const noexcept {
    const double gain_s = unchanged_s - with_s;
    const double as_is_gain_s = unchanged_s - as_is_s;
    return known() && is_gain(unchanged_s, with_s) && as_is_gain_s < kHardly * unchanged_s &&
           as_is_gain_s < kLittle * gain_s;
  }
};

/// Whether these are asked for an operator or a cause, by the functions here and by causes; all others are for advice.
bool is_intervention(const profile::Profile& profile, const std::vector<Change>& changes) noexcept;

MoreWorkers try_more_workers(const Predictor& predictor, const Interventions& interventions, int op);

/// An absence counts the cores, the interpreter lock and the order in which operators wait for each other, which
/// neither demand nor CPU time alone does.
Interventions try_interventions(const Predictor& predictor);

}  // namespace headrace::analysis
