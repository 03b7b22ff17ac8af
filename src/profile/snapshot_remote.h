// Requests to remote services, from the segment's totals.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/profile/figures.h"
#include "headrace/profile/remote_profile.h"

namespace headrace::profile {

/// `owner`: 1 + operator, or RemoteCell::kOfNoOperator. Empty: there were none.
std::optional<Remote> remote_of(const SegmentFigures& figures, std::uint32_t owner);

}  // namespace headrace::profile
