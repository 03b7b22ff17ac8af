#include "abstain.h"

#include <utility>

#include "headrace/analysis/read/pool_threads.h"
#include "headrace/analysis/words.h"

namespace headrace::analysis {
namespace {

constexpr double kFull = 0.9;

}  // namespace

std::string not_reproduced(const profile::Profile& profile, double measured_over_simulated) {
  if (measured_over_simulated <= 0) return "the recorded run cannot be simulated";
  if (measured_over_simulated <= kLargestMiss && measured_over_simulated >= 1 / kLargestMiss) return "";
  return "the recorded run is not reproduced (a step of " + duration(profile.sink.step_s) + ", simulated " +
         duration(profile.sink.step_s / measured_over_simulated) + ")";
}

std::string filled_by_pools(double cpu_share, double pool_share) {
  if (cpu_share < kFull || pool_share < kMuchInPools) return "";
  return "threads of a library fill the cores; what a change beside them would gain is not known";
}

Prediction abstain(std::string why) {
  Prediction prediction;
  prediction.why_not = std::move(why);
  return prediction;
}

}  // namespace headrace::analysis
