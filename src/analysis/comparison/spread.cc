#include "spread.h"

#include <algorithm>
#include <cmath>

namespace headrace::analysis {
namespace {

constexpr std::size_t kMaxBlocks = 20;
constexpr std::size_t kFewestBlocks = 4;
constexpr double kStepsOfBlock = 3;
/// By what the means of equal runs differ on a quiet machine, beyond what varies within them (measured: 0.3 % for
/// work that sleeps).
constexpr double kRunToRun = 0.01;
/// Drift in one second of work on a core: clock rate, neighbours behind a virtual machine, layout in memory.
/// They change within seconds, so a longer run averages over them. Measured: 7 % between runs of 0.7 s.
constexpr double kDriftOfCores = 0.05;

}  // namespace

Mean mean_of_run(const std::vector<Stretch>& stretches, double computes) {
  double steps = 0;
  double seconds = 0;
  for (const Stretch& each : stretches) {
    steps += each.steps;
    seconds += each.seconds;
  }
  if (steps <= 0 || seconds <= 0) return {};
  const double of_block = std::max(kStepsOfBlock, steps / kMaxBlocks);
  std::vector<Stretch> blocks(1);
  for (const Stretch& each : stretches) {
    if (blocks.back().steps >= of_block) blocks.emplace_back();
    blocks.back().seconds += each.seconds;
    blocks.back().steps += each.steps;
  }
  if (blocks.size() > 1 && blocks.back().steps < 0.5 * of_block) {
    const Stretch rest = blocks.back();
    blocks.pop_back();
    blocks.back().seconds += rest.seconds;
    blocks.back().steps += rest.steps;
  }
  Mean mean{.value = seconds / steps};
  if (blocks.size() < kFewestBlocks) return mean;
  // A ratio estimator: blocks differ in their steps.
  double squares = 0;
  for (const Stretch& block : blocks) {
    const double off = (block.seconds - mean.value * block.steps) / seconds;
    squares += off * off;
  }
  const auto count = static_cast<double>(blocks.size());
  const double drift = std::clamp(computes, 0.0, 1.0) * kDriftOfCores;
  mean.spread = std::sqrt(squares * count / (count - 1) + kRunToRun * kRunToRun + drift * drift / seconds);
  mean.degrees = count - 1;
  return mean;
}

Mean mean_of_runs(const std::vector<Mean>& runs) {
  if (runs.size() == 1) return runs.front();
  Mean mean;
  double within = 0;
  for (const Mean& run : runs) {
    if (!run.known()) return {};
    mean.value += run.value / static_cast<double>(runs.size());
    within += run.spread * run.spread;
  }
  if (mean.value <= 0) return {};
  double squares = 0;
  for (const Mean& run : runs) squares += (run.value - mean.value) * (run.value - mean.value);
  const auto count = static_cast<double>(runs.size());
  const double between = squares / (count - 1) / (mean.value * mean.value);
  // Two runs that happen to agree do not prove that all do.
  mean.spread = std::sqrt(std::max(between, within / count) / count);
  mean.degrees = between > within / count ? count - 1 : runs.front().degrees;
  return mean;
}

double t_of_99_percent(double degrees) {
  if (degrees <= 1) return 63.657;
  if (degrees < 3) return 9.925;
  constexpr double z = 2.575829;
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  const double n = degrees;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

}  // namespace headrace::analysis
