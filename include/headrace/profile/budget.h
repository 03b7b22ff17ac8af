// Where the wall clock of a run went: the parts add up to it. Declared as figure.h says; part of profile.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace headrace::profile
