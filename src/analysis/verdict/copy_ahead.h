// Advice to copy batches to the device while the step runs, for a loader that has a parameter for it.
#pragma once

#include <optional>
#include <string>

#include "headrace/analysis/read/thresholds.h"
#include "headrace/analysis/verdict/diagnosis.h"
#include "headrace/profile/profile.h"

namespace headrace::analysis {

/// Empty where the loader has no such parameter, or it is set. It has no prediction, because nothing tells which
/// part of `lost_s`, the time of each step that may be saved, is spent on copying; the text says so.
std::optional<Advice> advise_copying_ahead(const profile::Profile& profile, double lost_s, double step_s);

/// How long the device waits between two steps although the loop's batches are ready: the gap of its steps less
/// what the loop starved for. Empty where that is below the share of its step at which fetching finished batches
/// counts, or where the device's steps were not recorded.
std::optional<double> device_gap_s(const profile::Profile& profile, const GateThresholds& thresholds);

}  // namespace headrace::analysis
