// From nanoseconds and counts to the seconds and shares of a profile.
#pragma once

#include <algorithm>

namespace headrace::profile {

/// Seconds in a nanosecond.
inline constexpr double kSecond = 1e-9;

/// Within 0 and 1, and 0 if there is no whole.
inline double share(double part, double whole) { return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0; }

/// Looks at threads that are needed to say what share of their time they waited for a lock or for storage.
inline constexpr double kMinSamples = 10;

}  // namespace headrace::profile
