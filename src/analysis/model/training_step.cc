#include "training_step.h"

#include <algorithm>

#include "../read/numbers.h"
#include "headrace/analysis/read/cpu_contention.h"

namespace headrace::analysis {

std::vector<Work> training_steps(const profile::SinkProfile& sink, double own_s, double queue_share,
                                 const profile::Host& host) {
  const double cpu_share = std::min(1.0, ratio(sink.compute_cpu_s.value_or(0), own_s));
  if (sink.compute_core_wait_s)
    queue_share = std::min(1 - cpu_share, ratio(*sink.compute_core_wait_s, own_s));
  const double alone = cpu_share / recorded_slowdown(host, cpu_share * ratio(sink.compute_s, sink.step_s));
  const Work part{std::max(0.0, 1 - cpu_share - queue_share), alone};
  double sum = 0;
  for (const profile::StepSample& step : sink.sequence) sum += step.compute_s;
  if (sum <= 0) return {part * own_s};
  // The recorded steps are a part of the run; their mean is that of the whole.
  const double scale = own_s * static_cast<double>(sink.sequence.size()) / sum;
  std::vector<Work> steps;
  steps.reserve(sink.sequence.size());
  for (const profile::StepSample& step : sink.sequence) steps.push_back(part * (step.compute_s * scale));
  return steps;
}

}  // namespace headrace::analysis
