#include "headrace/analysis/read/pool_threads.h"

#include <algorithm>

#include "headrace/analysis/read/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

constexpr double kMinShare = 0.1;

}  // namespace

double pool_cpu_s(const profile::Profile& profile) {
  const profile::SinkProfile& sink = profile.sink;
  if (!profile.host.process_cpu_cores || !sink.compute_cpu_s || !(sink.step_s > 0)) return 0;
  double known_s = *sink.compute_cpu_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor == profile::Executor::process) continue;
    known_s += op.cpu_s ? cpu_per_batch_s(op) : std::max(0.0, op.demand_s) * op.workers;
  }
  const double cpu_s = *profile.host.process_cpu_cores * sink.step_s - known_s;
  return cpu_s >= kMinShare * sink.step_s ? cpu_s : 0;
}

double pool_share_of_process(const profile::Profile& profile) {
  return ratio(pool_cpu_s(profile), profile.host.process_cpu_cores.value_or(0) * profile.sink.step_s);
}

double pool_share_of_workers(const profile::Profile& profile) {
  const profile::Host& host = profile.host;
  if (!host.process_cpu_cores || !host.cpu_share) return 0;
  double known_s = 0;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor != profile::Executor::process) continue;
    if (!op.cpu_s && op.busy_s > 0) return 0;
    known_s += cpu_per_batch_s(op);
  }
  if (known_s <= 0) return 0;
  const double cpu_s = (*host.cpu_share * host.cores - *host.process_cpu_cores) * profile.sink.step_s;
  return std::max(0.0, 1 - ratio(known_s, cpu_s));
}

}  // namespace headrace::analysis
