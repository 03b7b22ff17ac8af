#include "repeat.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "../read/numbers.h"

namespace headrace::analysis {
namespace {

constexpr std::size_t kAlong = 2;
constexpr int kDrawnAgain = 4;
constexpr double kVaried = 0.4;

/// The mean of runs along the record, begun at different places: their order is the true one. `steps`: takes the step
/// of each run; null: not needed.
SimulatedRun mean_along(const Network& network, bool varied, std::vector<double>* steps) {
  // Longer runs if times vary: a rare item must have its chance.
  const int batches = network.batches() * (varied ? 3 : 1);
  SimulatedRun mean;
  for (std::size_t run = 0; run < kAlong; ++run) {
    const SimulatedRun one = simulate(network, batches, run * network.recorded() / kAlong);
    if (steps != nullptr) steps->push_back(one.step_s);
    mean.add(one, 1.0 / kAlong);
  }
  return mean;
}

bool varied(const Network& network) { return network.variation() > kVaried; }

}  // namespace

Repeated repeat(const Network& network) {
  const bool varies = varied(network);
  std::vector<double> steps;
  Repeated repeated;
  repeated.mean = mean_along(network, varies, &steps);
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed): the same answer each time
  for (int run = 0; run < (varies ? kDrawnAgain : 0); ++run) {
    Network again = network;
    again.draw_again(random);
    steps.push_back(simulate(again, network.batches(), 0).step_s);
  }
  double squares = 0;
  for (double step : steps) squares += (step - repeated.mean.step_s) * (step - repeated.mean.step_s);
  repeated.spread = ratio(std::sqrt(squares / static_cast<double>(steps.size() - 1)), repeated.mean.step_s);
  return repeated;
}

double step_with_cores(Network network, double cores, double held_s) {
  if (cores <= network.cores) return held_s;
  network.cores = cores;
  const double step_s = mean_along(network, varied(network), nullptr).step_s;
  return step_s > 0 ? std::min(step_s, held_s) : held_s;
}

}  // namespace headrace::analysis
