#include "copy_ahead.h"

#include <variant>

#include "../read/numbers.h"
#include "headrace/analysis/read/loader.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {

std::optional<Advice> advise_copying_ahead(const profile::Profile& profile, double lost_s, double step_s) {
  const profile::LoaderParameter* ahead = parameter_of(profile, profile::Quantity::copies_ahead);
  if (ahead == nullptr || ahead->value != profile::ParameterValue(false)) return std::nullopt;
  Advice advice;
  advice.parameter = ahead->name;
  advice.from = false;
  advice.to = true;
  advice.text = "copy batches to the device while the step runs; that saves at most " + duration(lost_s) +
                " of " + duration(step_s) +
                ", and how much of it is unknown, because no file tells how long copying takes";
  return advice;
}

std::optional<double> device_gap_s(const profile::Profile& profile, const GateThresholds& thresholds) {
  if (!profile.device || !profile.device->steps) return std::nullopt;
  const profile::DeviceSteps& steps = *profile.device->steps;
  const double step_s = steps.iteration_gap_s + steps.forward_backward_s + steps.tail_s;
  const double gap_s = steps.iteration_gap_s - profile.sink.starved_share * profile.sink.step_s;
  if (step_s <= 0 || gap_s < thresholds.served_share * step_s) return std::nullopt;
  return gap_s;
}

}  // namespace headrace::analysis
