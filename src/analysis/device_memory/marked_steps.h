// The steps that a snapshot has marks of.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/memory/snapshot.h"

namespace headrace::analysis::device_memory {

/// A `ProfilerStep#N`; the text is the snapshot's.
struct MarkedStep {
  std::string_view name;
  std::int64_t begin_us = 0;
  std::int64_t end_us = 0;
};

/// By time. Marks of the device, or of all devices if it has none: the steps are the program's.
std::vector<MarkedStep> marked_steps(const memory::Snapshot& snapshot, std::int64_t device);

/// The name of the step that a moment is in; empty if it is in none.
std::string_view step_at(const std::vector<MarkedStep>& steps, std::int64_t time_us) noexcept;

}  // namespace headrace::analysis::device_memory
