// The state word of a record, as tables compare and exchange it.
#pragma once

#include <cstdint>

#include "headrace/profile/layout.h"

namespace headrace::profile {

constexpr std::uint32_t life_of(RecordLife life) { return static_cast<std::uint32_t>(life); }
constexpr std::uint32_t life_of(metrics::WorkerLife life) { return static_cast<std::uint32_t>(life); }

/// It holds figures: in use, or closed and not yet folded.
constexpr bool is_live(std::uint32_t life) {
  return life == life_of(RecordLife::live) || life == life_of(RecordLife::closed);
}

}  // namespace headrace::profile
