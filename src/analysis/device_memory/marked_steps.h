// The steps that a snapshot has marks of.
#pragma once

#include <cstdint>
#include <map>
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

/// The steps of all devices, each device's by their ends.
class MarkedSteps {
 public:
  explicit MarkedSteps(const memory::Snapshot& snapshot);

  /// Those marked on the device; on the device with the lowest number if it has none, because steps are the
  /// program's.
  const std::vector<MarkedStep>& of(std::int64_t device) const noexcept;
  /// The name of the step of a device that a moment is in; empty if it is in none.
  std::string_view at(std::int64_t device, std::int64_t time_us) const noexcept;

 private:
  std::map<std::int64_t, std::vector<MarkedStep>> of_device_;
};

}  // namespace headrace::analysis::device_memory
