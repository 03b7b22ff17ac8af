// A simulated run, repeated: its mean, and what runs of the same loader differ by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "../diagnosis/numbers.h"
#include "headrace/analysis/what_if/work.h"

namespace headrace::analysis {

/// Works of one worker or server, in the order in which they were recorded.
using WorkSequence = std::vector<Work>;

/// Standard deviation / mean of the works of all lanes.
inline double variation_of(const std::vector<WorkSequence>& lanes) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const WorkSequence& lane : lanes) {
    for (const Work& work : lane) {
      sum += work.total_s();
      squares += work.total_s() * work.total_s();
      count += 1;
    }
  }
  const double mean = ratio(sum, count);
  return ratio(std::sqrt(std::max(0.0, ratio(squares, count) - mean * mean)), mean);
}

/// Draws the works again in blocks that stay together: another run of the same loader (a block bootstrap).
inline void draw_again(std::vector<WorkSequence>& lanes, std::mt19937_64& random) {
  constexpr std::size_t kBlock = 4;
  for (WorkSequence& lane : lanes) {
    const WorkSequence from = lane;
    for (std::size_t i = 0; i < lane.size(); i += kBlock) {
      const std::size_t begin = random() % from.size();
      for (std::size_t k = i; k < std::min(i + kBlock, lane.size()); ++k) {
        lane[k] = from[(begin + k - i) % from.size()];
      }
    }
  }
}

template <typename Run>
struct Repeated {
  Run mean;
  double spread = 0;  ///< of one run's step, relative
};

constexpr std::size_t kAlong = 2;

template <typename Model>
bool varied(const Model& model) {
  constexpr double kVaried = 0.4;
  return model.variation() > kVaried;
}

/// The mean of runs along the record, begun at different places: their order is the true one. A model says how
/// long its record is, how many batches a run needs, whether its works vary, and how to draw them again.
/// `steps`: takes the step of each run; null: not needed.
template <typename Model>
auto mean_along(const Model& model, std::vector<double>* steps = nullptr) {
  // Where times vary, longer runs: a rare item must have its chance.
  const int batches = model.batches() * (varied(model) ? 3 : 1);
  decltype(simulate(model, batches, 0)) mean;
  for (std::size_t run = 0; run < kAlong; ++run) {
    const auto one = simulate(model, batches, run * model.recorded() / kAlong);
    if (steps != nullptr) steps->push_back(one.step_s);
    mean.add(one, 1.0 / kAlong);
  }
  return mean;
}

/// All runs together, those of works drawn again among them, give what runs differ by.
template <typename Model>
auto repeat(const Model& model) {
  constexpr std::size_t kDrawnAgain = 4;
  std::vector<double> steps;
  Repeated<decltype(mean_along(model))> repeated;
  repeated.mean = mean_along(model, &steps);
  std::mt19937_64 random(1);
  for (std::size_t run = 0; run < (varied(model) ? kDrawnAgain : 0); ++run) {
    Model again = model;
    again.draw_again(random);
    steps.push_back(simulate(again, model.batches(), 0).step_s);
  }
  double squares = 0;
  for (double step : steps) squares += (step - repeated.mean.step_s) * (step - repeated.mean.step_s);
  repeated.spread = ratio(std::sqrt(squares / static_cast<double>(steps.size() - 1)), repeated.mean.step_s);
  return repeated;
}

/// The mean step of the same model with more cores; that of `held` where it has no more.
template <typename Model>
double step_with_cores(Model model, double cores, double held_s) {
  if (cores <= model.cores) return held_s;
  model.cores = cores;
  const double step_s = mean_along(model).step_s;
  return step_s > 0 ? std::min(step_s, held_s) : held_s;
}

}  // namespace headrace::analysis
