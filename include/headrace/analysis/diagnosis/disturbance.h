// How much other processes stood in this run's way.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Share of the cores that others used as far as they and this run together exceeded them, 0 to 1; 0 where
/// that is not known. (The recorder takes it per tenth of a second: neighbours of a run that sleeps count
/// little.)
///
/// How to read it: above 0.05 a verdict is less sure, above 0.2 nothing is predicted.
inline double disturbance(const profile::Host& host) noexcept {
  return host.foreign_contention_share.value_or(0);
}

inline constexpr double kDisturbed = 0.05;
inline constexpr double kTooDisturbed = 0.2;

}  // namespace headrace::analysis
