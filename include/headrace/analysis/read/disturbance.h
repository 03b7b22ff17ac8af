// How much other processes stood in this run's way.
#pragma once

#include <algorithm>

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Share of the cores that others used as far as they and this run together exceeded them, 0 to 1; 0 where
/// that is not known. (The recorder takes it per tenth of a second: neighbours of a run that sleeps count
/// little.)
///
/// How to read it: above 0.05 predictions hold only while others go on as they did.
inline double disturbance(const profile::Host& host) noexcept {
  return host.foreign_contention_share.value_or(0);
}

inline constexpr double kDisturbed = 0.05;

/// Cores that a run may use, from the pessimistic to the optimistic end.
struct FreeCores {
  double held = 0;     ///< other processes keep every core that they used
  double yielded = 0;  ///< the scheduler takes back what they only had because this run left it idle
};

/// `otherwise`: the number of cores where it is unknown. Both are at least what the run itself used.
inline FreeCores free_cores(const profile::Host& host, double otherwise) noexcept {
  constexpr double kMin = 0.25;
  const double cores = host.cores > 0 ? host.cores : otherwise;
  const double used = std::max(kMin, host.cpu_share.value_or(0) * cores);
  const double yielded = cores * (1 - disturbance(host));
  const double held = cores * (1 - std::max(host.foreign_cpu_share.value_or(0), disturbance(host)));
  return {std::max(used, held), std::max(used, yielded)};
}

/// Others use so much that a run with more work to do finds fewer cores than it sees.
inline bool has_neighbours(const profile::Host& host) noexcept {
  constexpr double kNoticeable = 0.1;
  return disturbance(host) >= kDisturbed || host.foreign_cpu_share.value_or(0) >= kNoticeable;
}

}  // namespace headrace::analysis
