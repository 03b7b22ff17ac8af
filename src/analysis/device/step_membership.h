// Which step a piece of device work counts for, by when it ran.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/analysis/device/device_work.h"

namespace headrace::analysis::device {

/// One entry per piece of work: index into `trace.steps.all()`, `Steps::kNone` if it began in no step.
///
/// A step's time reaches from its start on the host to the later of its end there and the last end of the
/// work that it launched. Work that begins in the time of several steps belongs to the one that launched it,
/// else to the one that began last.
std::vector<std::int32_t> step_membership(const trace::Trace& trace, std::span<const Work> work);

}  // namespace headrace::analysis::device
