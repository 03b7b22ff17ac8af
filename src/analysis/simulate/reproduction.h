// How well a recorded run is reproduced by its own simulation.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// How a recorded run is best reproduced.
struct Fit {
  double measured_over_simulated = 0;  ///< of the step; 0: not at all
  bool ordered = false;                ///< several workers deliver in the order in which they took
  bool order_known = true;             ///< false: that is a guess
  std::vector<int> lock_turns = {};    ///< of each stage (LockUse)
  int sink_lock_turns = 1;
};

/// Part of a simulator, which is made for one profile: the fit is found when it is first asked for.
/// Thread-safe.
class Reproduction {
 public:
  template <typename Find>
  const Fit& fit(Find&& find) const {
    std::call_once(found_, [&] { fit_ = std::forward<Find>(find)(); });
    return fit_;
  }

 private:
  mutable std::once_flag found_;
  mutable Fit fit_;
};

/// A profile is always simulated with the same seed.
inline std::uint64_t seed_of(const profile::Profile& profile) {
  return profile.sink.getnext_wait.count * 2654435761U + 1;
}

}  // namespace headrace::analysis
