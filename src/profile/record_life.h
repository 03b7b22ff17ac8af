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

/// Its thread goes on. Acquire pairs with the publication of its pid and tid.
inline bool is_live(const metrics::WorkerCell& worker) noexcept {
  return worker.life.load(std::memory_order_acquire) == life_of(metrics::WorkerLife::live);
}

}  // namespace headrace::profile
