// Limits of simulations.
#pragma once

namespace headrace::analysis {

/// Beyond these, a change makes no difference that could be simulated. The window is in batches.
inline constexpr int kMaxWorkers = 512;
inline constexpr int kLargestQueue = 1 << 20;
inline constexpr int kLongestWindow = 4096;

/// Batches before a run is measured, beside those that fill its buffers.
inline constexpr int kSettle = 16;

}  // namespace headrace::analysis
