// The steps of a device trace as a report holds them.
#pragma once

#include <optional>

#include "headrace/analysis/device/step_points.h"
#include "headrace/profile/profile.h"

namespace headrace::timeline {

/// From `StepPoints::steps` of one rank; empty if it has no rows.
std::optional<profile::DeviceSteps> device_steps(const analysis::Table& steps,
                                                 const analysis::device::StepPointsOptions& points);

}  // namespace headrace::timeline
