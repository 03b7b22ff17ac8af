#include "settling.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../read/numbers.h"

namespace headrace::analysis {

double settling_s(const profile::SinkProfile& sink, const GateThresholds& thresholds) {
  const std::vector<profile::StepSample>& steps = sink.sequence;
  if (static_cast<double>(steps.size()) < thresholds.fewest_steps ||
      steps.size() + 1 < sink.getnext_wait.count)
    return 0;
  double wait_s = 0;
  double time_s = 0;
  for (const profile::StepSample& step : steps) {
    wait_s += step.wait_s;
    time_s += step.wait_s + step.compute_s;
  }
  const double handed_s = sink.handoff_floor_s;
  double settling_s = 0;
  for (std::size_t first = 0; first < steps.size(); ++first) {
    const auto left = static_cast<double>(steps.size() - first);
    if (static_cast<double>(first) > 2 * thresholds.fewest_steps ||
        left < std::max(thresholds.fewest_steps, static_cast<double>(first)))
      return 0;
    if (wait_s - left * handed_s < kMostOf * thresholds.starved_share * time_s) return settling_s;
    settling_s += std::max(0.0, steps[first].wait_s - handed_s);
    wait_s -= steps[first].wait_s;
    time_s -= steps[first].wait_s + steps[first].compute_s;
  }
  return 0;
}

}  // namespace headrace::analysis
