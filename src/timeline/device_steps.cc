#include "timeline/device_steps.h"

#include <cmath>
#include <cstddef>

namespace headrace::timeline {
namespace {

/// As many as a run keeps of its own steps.
constexpr std::size_t kMaxSteps = 512;

std::optional<double> known(double figure) {
  return std::isnan(figure) ? std::nullopt : std::optional<double>(figure);
}

}  // namespace

std::optional<profile::DeviceSteps> device_steps(const analysis::Table& steps,
                                                 const analysis::device::StepPointsOptions& points) {
  const std::size_t rows = steps.rows();
  if (rows == 0) return std::nullopt;
  profile::DeviceSteps found;
  found.of_steps = rows;
  found.fp_point = points.fp_point;
  found.bp_point = points.bp_point;
  for (std::size_t row = 0; row < rows; ++row) {
    profile::DeviceStep step;
    step.step = steps.integers("step")[row];
    step.iteration_gap_s = known(steps.numbers("iteration_gap_s")[row]);
    step.forward_backward_s = known(steps.numbers("forward_backward_s")[row]);
    step.tail_s = known(steps.numbers("tail_s")[row]);
    step.total_s = steps.numbers("total_s")[row];
    step.communication_s = steps.numbers("communication_s")[row];
    step.communication_overlap_s = steps.numbers("communication_overlap_s")[row];
    if (step.iteration_gap_s) {
      ++found.steps;
      found.tail_steps += step.tail_s ? 1 : 0;
      found.iteration_gap_s += *step.iteration_gap_s;
      found.forward_backward_s += step.forward_backward_s.value_or(0);
      found.tail_s += step.tail_s.value_or(0);
      found.communication_s += step.communication_s;
      found.communication_overlap_s += step.communication_overlap_s;
    }
    if (row + kMaxSteps >= rows) found.sequence.push_back(step);
  }
  if (found.steps > 0) {
    for (double* sum : {&found.iteration_gap_s, &found.forward_backward_s, &found.tail_s,
                        &found.communication_s, &found.communication_overlap_s})
      *sum /= static_cast<double>(found.steps);
  }
  return found;
}

}  // namespace headrace::timeline
