// What the host sampler's counters say, as shares.
#pragma once

#include "headrace/profile/figures.h"

namespace headrace::profile {

/// Fills profile.host; what the machine could not give stays empty.
void add_host(const SegmentImage& image, const SegmentFigures& figures, Profile& profile);

/// The same for window number `k` of width `width` (ns of loop time).
WindowHost host_window(const SegmentImage& image, std::int64_t k, std::int64_t width);

}  // namespace headrace::profile
