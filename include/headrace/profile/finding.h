// Something that is wrong with the data or the training, found while it ran (docs/watch.md). Declared as figure.h
// says; part of profile.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/profile/figure.h"

namespace headrace::profile {

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

}  // namespace headrace::profile
