// How well a recorded run is reproduced by its own simulation, found once per profile.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// How a recorded run is best reproduced.
struct Fit {
  double measured_over_simulated = 0;  ///< of the step; 0: not at all
  bool ordered = false;                ///< several workers deliver in the order in which they took
};

/// Thread-safe. The same run is asked about many changes.
class Reproduction {
 public:
  /// The fit of `profile`; `find()` is called where that is not known yet.
  template <typename Find>
  Fit of(const profile::Profile& profile, Find&& find) const {
    const std::string figures = figures_of(profile);
    {
      const std::lock_guard lock(mutex_);
      if (figures_ == figures) return fit_;
    }
    const Fit fit = find();
    const std::lock_guard lock(mutex_);
    figures_ = figures;
    fit_ = fit;
    return fit;
  }

 private:
  /// Every figure that a simulation starts from, so that another profile is never taken for the same.
  static std::string figures_of(const profile::Profile& profile);

  mutable std::mutex mutex_;
  mutable std::string figures_;
  mutable Fit fit_;
};

/// The same profile is always simulated with the same seed.
std::uint64_t seed_of(const profile::Profile& profile);

}  // namespace headrace::analysis
