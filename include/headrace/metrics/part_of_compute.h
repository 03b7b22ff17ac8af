// A time within the compute of a step, in two bytes: a segment holds many steps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headrace/metrics/relaxed.h"

namespace headrace::metrics {

/// Exact to 1/65,534 of the compute. One writer; any number of readers, also in other processes.
class PartOfCompute {
 public:
  /// ns below 0: not known.
  void store(std::int64_t ns, std::int64_t compute_ns) noexcept {
    if (ns < 0) return part_.store(kUnknown);
    const double part = compute_ns > 0 ? static_cast<double>(ns) / static_cast<double>(compute_ns) : 0;
    part_.store(static_cast<std::uint16_t>(std::min(part, 1.0) * kAll + 0.5));
  }
  /// In the unit of `compute`; below 0: not known.
  double of(double compute) const noexcept {
    const std::uint16_t part = part_.load();
    return part == kUnknown ? -1 : compute * part / kAll;
  }

 private:
  static constexpr std::uint16_t kUnknown = 65'535;
  static constexpr double kAll = 65'534;

  Relaxed<std::uint16_t> part_;
};

}  // namespace headrace::metrics
