// What another tool would have said of the same recording. Declared as figure.h says; part of profile.h.
#pragma once

#include <string>

#include "headrace/profile/figure.h"

namespace headrace::profile {

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
