// The profile of an hour: 64 worker processes, 8 operators, every recorded list at its full length.
#pragma once

#include "headrace/profile/profile.h"

namespace headrace::bench {

inline constexpr int kWorkers = 64;
inline constexpr int kOperators = 8;
inline constexpr int kWindows = 128;

profile::Profile long_run();

}  // namespace headrace::bench
