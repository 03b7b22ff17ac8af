// Facts of a run beside its loaders: wall clock, findings of the watch, changed parameters, other tools' opinions.
// Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/figure.h"

namespace headrace::profile {

struct BudgetPart {
  std::string part;
  std::string loader;
  std::string function;
  double seconds = 0;
  double share = 0;
  std::uint64_t times = 0;
  std::optional<double> period;
  double loader_start_s = 0;
  std::string cure;
  std::optional<double> saves_s;
};

constexpr About about(Of<BudgetPart>) {
  return {"BudgetPart",
          "A part of the run's wall clock, of one place in the program. All parts add up to it."};
}
template <class Visit>
constexpr void figures_of(Of<BudgetPart>, Visit&& figure) {
  figure(
      "part", &BudgetPart::part,
      {"`steps`: of the training loop. `waits`: its GetNext. `startup`: before the first loop (imports, the "
       "dataset), and first batches of epochs (workers start). `evaluation`, `checkpoints`, `logging`, "
       "`weight_sync` (weights go to what generates samples): by what the loop's thread was in. "
       "`between_epochs`: anything else between two loops. `other`: the "
       "rest."});
  figure("loader", &BudgetPart::loader,
         {"The loader that the part is of; null where it is of none.", nullptr, Null::when_unset});
  figure(
      "function", &BudgetPart::function,
      {"The function that the program calls there, with the line of the call, from samples of the thread's "
       "stack; null where none was seen.",
       nullptr, Null::when_unset});
  figure("seconds", &BudgetPart::seconds, {"How long.", &kSeconds});
  figure("share", &BudgetPart::share, {"Part of the run's wall clock."});
  figure("times", &BudgetPart::times, {"How often it began: pauses, epochs; of `steps`, how many.", &kCount});
  figure("period", &BudgetPart::period,
         {"Training steps from one time to the next, on average; null: it was there once.", &kCount});
  figure("loader_start_s", &BudgetPart::loader_start_s,
         {"The part of `seconds` until a loader's epochs had their first batch.", &kSeconds});
  figure("cure", &BudgetPart::cure, {"What to do; null: nothing.", nullptr, Null::when_unset});
  figure("saves_s", &BudgetPart::saves_s,
         {"What that saves of this run, at most; null where it cannot be said.", &kSeconds});
}

struct Finding {
  std::string kind;
  std::string severity;
  std::string where;
  std::int64_t first_step = -1;
  std::int64_t steps = 0;
  std::vector<std::int64_t> samples;
  std::string says;
  std::map<std::string, double> figures;
  std::string cure;
};

constexpr About about(Of<Finding>) {
  return {"Finding", "Something that is wrong with the data or the training, and where."};
}
template <class Visit>
constexpr void figures_of(Of<Finding>, Visit&& figure) {
  figure("kind", &Finding::kind, {"What is wrong, in one word: nonfinite_batch, order_identical, leak ..."});
  figure("severity", &Finding::severity,
         {"\"fault\": what makes training worse; \"note\": what may be meant so."});
  figure("where", &Finding::where,
         {"The field of the batch, the attribute of the dataset, the module or the parameter, as the program "
          "writes "
          "it."});
  figure("first_step", &Finding::first_step,
         {"The step it was first seen in, from 0; null: it belongs to none.", &kCount, Null::when_unset});
  figure("steps", &Finding::steps, {"In how many of the steps that were looked at."});
  figure("samples", &Finding::samples,
         {"Dataset indices of the samples concerned; empty where none are known.", &kName});
  figure("says", &Finding::says, {"A sentence with the evidence."});
  figure("figures", &Finding::figures, {"The numbers that it rests on.", &kName});
  figure("cure", &Finding::cure, {"What to do."});
}

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

struct SecondOpinion {
  std::string tool;
  std::string rule;
  std::string says;
  std::string op;
  std::string misled;
};

constexpr About about(Of<SecondOpinion>) {
  return {"SecondOpinion",
          "What another tool concludes from the same files, by its own published rule. It has no part in the "
          "diagnosis."};
}
template <class Visit>
constexpr void figures_of(Of<SecondOpinion>, Visit&& figure) {
  figure("tool", &SecondOpinion::tool, {"Whose rule it is."});
  figure("rule", &SecondOpinion::rule, {"Which of its rules."});
  figure("says", &SecondOpinion::says, {"Its conclusion, in the words of the tool."});
  figure("operator", &SecondOpinion::op,
         {"Operators that it names, joined by \", \"; null: none.", nullptr, Null::when_unset});
  figure("misled", &SecondOpinion::misled,
         {"Why it does not fit the recording; null where nothing speaks against it.", nullptr,
          Null::when_unset});
}

}  // namespace headrace::profile
