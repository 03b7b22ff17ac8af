// A loader that delivers in windows: n batches at once, then nothing until the next n are made.
#pragma once

#include <cstddef>
#include <optional>

#include "headrace/analysis/verdict/causes/cause.h"
#include "headrace/analysis/verdict/diagnosis.h"

namespace headrace::analysis {

struct BatchWindows {
  std::size_t size = 0;     ///< batches of one
  std::size_t windows = 0;  ///< how many were seen
  double wait_s = 0;        ///< mean wait for one
  /// Whether the wait is as long whatever the loop takes for the batches before it: then nothing is made meanwhile.
  /// Empty where the steps are too even to tell. True for what runs in the loop itself.
  std::optional<bool> stands_still;
};

/// Windows of the last steps. Empty where waits come irregularly, or where the number of workers explains their rhythm:
/// workers that begin together also end together.
std::optional<BatchWindows> batch_windows(const Case& facts);

/// The sign in the evidence, and what to do about it. Nothing where there are no windows.
void add_batch_windows(const Case& facts, Diagnosis& diagnosis);

}  // namespace headrace::analysis
