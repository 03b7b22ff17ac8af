// The value of a parameter that is worth advising: of those that gain as much as the best, the one that costs least.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "headrace/analysis/simulate/predictor.h"

namespace headrace::analysis {

/// Not known, or gains more than half of its interval: with less, the change may as well do nothing.
bool worth_it(double step_s, const Prediction& prediction);

struct Choice {
  int value = 0;
  Prediction then;
};

/// Simulations of one loader that draw its items again differ by this, so two steps within it are equally short.
inline constexpr double kNoise = 0.03;

inline bool as_short(double step_s, double shortest_s) noexcept {
  return step_s <= (1 + kNoise) * shortest_s;
}

/// The first of `values` that gains something and whose step is as short as the shortest; the first of all where none
/// gains. They ascend in what they cost (memory, processes), and are tried in that order until the simulation abstains, or
/// three in a row gain nothing more. Empty if nothing is predicted of the first one.
std::optional<Choice> cheapest(const Predictor& predictor, const std::vector<int>& values,
                               const std::function<std::vector<Change>(int)>& changes_to);

/// first, first + 1, ... last; empty if last is smaller.
std::vector<int> numbers(int first, int last);

/// first, 2 first, 4 first, ... up to `last`.
std::vector<int> doubled(int first, int last);

}  // namespace headrace::analysis
