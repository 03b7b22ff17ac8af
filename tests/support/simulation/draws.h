// What the classes of pipelines and of DataLoaders are drawn with, and the verdicts that they get.
#pragma once

#include <random>
#include <set>
#include <string>

#include "support/simulation/line.h"

namespace headrace::simulation {

inline const std::set<std::string> kBound{"input_bound"};
inline const std::set<std::string> kHealthy{"not_input_bound"};

inline double between(Random& random, double low, double high) {
  return std::uniform_real_distribution<>(low, high)(random);
}
inline int among(Random& random, int low, int high) {
  return std::uniform_int_distribution<>(low, high)(random);
}

}  // namespace headrace::simulation
