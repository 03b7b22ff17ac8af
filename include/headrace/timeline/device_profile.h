// Combines a run and a device trace: what the device did in the steps of the run, and why it was idle.
#pragma once

#include <optional>
#include <string_view>

#include "headrace/analysis/device/step_points.h"
#include "headrace/profile/history.h"
#include "headrace/profile/profile.h"
#include "headrace/trace/trace.h"

namespace headrace::timeline {

/// The device's idle time of one rank's trace, split by cause (analysis::device::device_idle), with the
/// GetNext waits that the run recorded, on the trace's clock. `loader`: the name of the loop in `history`.
///
/// Without a history, or where nothing tells how the clocks lie to each other, the trace's own `__next__`
/// ranges are the waits. Empty if the trace has no work on a device.
///
/// Its steps are cut at `points`; the last 512 are kept, their means are over all.
std::optional<profile::DeviceProfile> device_profile(const trace::Trace& trace,
                                                     const profile::History* history, std::string_view loader,
                                                     const analysis::device::StepPointsOptions& points = {});

}  // namespace headrace::timeline
