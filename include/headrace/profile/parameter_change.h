// What was set of a loader while its program trained. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct ParameterChange {
  std::string loader;
  std::uint64_t step = 0;
  std::string parameter;
  std::string from_value;
  std::string to_value;
  std::string outcome;
  std::string says;
  std::optional<double> predicted_step_s;
  std::optional<double> before_step_s;
  std::optional<double> after_step_s;
  std::optional<double> low;
  std::optional<double> high;
};

constexpr About about(Of<ParameterChange>) {
  return {
      "ParameterChange",
      "A parameter that was set while the program trained. Steps have their part of what the beginnings of "
      "epochs cost."};
}
template <class Visit>
constexpr void figures_of(Of<ParameterChange>, Visit&& figure) {
  figure("loader", &ParameterChange::loader, {"Name of the loader."});
  figure("step", &ParameterChange::step, {"Steps that its loops had done by then.", &kCount});
  figure("parameter", &ParameterChange::parameter,
         {"In the framework's own name; several with commas between."});
  figure("from_value", &ParameterChange::from_value, {"What it was."});
  figure("to_value", &ParameterChange::to_value, {"What was tried."});
  figure("outcome", &ParameterChange::outcome,
         {"`kept`, `put_back`, or `tried`: the run ended before it was judged."});
  figure("says", &ParameterChange::says, {"Why, in words; null: not judged.", nullptr, Null::when_unset});
  figure("predicted_step_s", &ParameterChange::predicted_step_s,
         {"The step that was expected; null: it could not be predicted.", &kSeconds});
  figure("before_step_s", &ParameterChange::before_step_s,
         {"The mean step with the best parameters before; null: not judged.", &kSeconds});
  figure("after_step_s", &ParameterChange::after_step_s, {"The mean step with this one.", &kSeconds});
  figure("low", &ParameterChange::low,
         {"The ratio of the steps, after / before, is from here to `high` in 99 of 100 cases."});
  figure("high", &ParameterChange::high, {"See `low`; null: too little was recorded to tell."});
}

}  // namespace headrace::profile
