// What the classes of pipelines and of DataLoaders are drawn with, and the verdicts that they get.
#pragma once

#include <random>
#include <set>
#include <string>
#include <utility>

#include "support/simulation/line.h"

namespace headrace::simulation {

inline const std::set<std::string> kBound{"input_bound"};
inline const std::set<std::string> kHealthy{"not_input_bound"};

inline double between(Random& random, double low, double high) {
  return std::uniform_real_distribution<>(low, high)(random);
}
/// `factor`, and 10 % around it.
inline Factor noisier(Factor factor) {
  return [factor = std::move(factor), noise = jitter(0.1)](std::uint64_t item, Random& random) {
    return factor(item, random) * noise(item, random);
  };
}
inline int among(Random& random, int low, int high) {
  return std::uniform_int_distribution<>(low, high)(random);
}

}  // namespace headrace::simulation
