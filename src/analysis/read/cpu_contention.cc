#include "headrace/analysis/read/cpu_contention.h"

#include <algorithm>

#include "headrace/analysis/read/pool_threads.h"

namespace headrace::analysis {
namespace {

constexpr double kContention = 0.08;

}  // namespace

double slowdown(double others_busy_share) noexcept {
  return 1 + kContention * std::clamp(others_busy_share, 0.0, 1.0);
}

double recorded_slowdown(const profile::Host& host, double own_cores) noexcept {
  if (host.cores < 2 || !host.cpu_share) return 1;
  const double used = (*host.cpu_share + host.foreign_cpu_share.value_or(0)) * host.cores;
  return slowdown((used - std::clamp(own_cores, 0.0, 1.0)) / (host.cores - 1));
}

double pool_work_s(const profile::Profile& profile) {
  const double cpu_s = pool_cpu_s(profile);
  return cpu_s > 0 ? cpu_s / recorded_slowdown(profile.host, cpu_s / profile.sink.step_s) : 0;
}

}  // namespace headrace::analysis
