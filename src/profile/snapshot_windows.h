// The profile's figures per time window.
#pragma once

#include <cstdint>

#include "headrace/profile/figures.h"
#include "headrace/profile/graph.h"

namespace headrace::profile {

/// Aligns the windows of all cells and adds them to `profile`, whose operators and queues are
/// complete and in the order of `graph`. Windows that began before loop time `from_ns` are left out.
void add_windows(const SegmentImage& image, std::uint32_t loader, const SegmentFigures& figures,
                 const Graph& graph, std::int64_t from_ns, Profile& profile);

}  // namespace headrace::profile
