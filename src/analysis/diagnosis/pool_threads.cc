#include "headrace/analysis/diagnosis/pool_threads.h"

#include "headrace/analysis/diagnosis/demand.h"

namespace headrace::analysis {
namespace {

constexpr double kLeastShare = 0.1;

}  // namespace

double pool_cpu_s(const profile::Profile& profile) {
  const profile::SinkProfile& sink = profile.sink;
  if (!profile.host.process_cpu_cores || !sink.compute_cpu_s || !(sink.step_s > 0)) return 0;
  double known_s = *sink.compute_cpu_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor == profile::Executor::process) continue;
    if (!op.cpu_s && op.busy_s > 0) return 0;
    known_s += cpu_per_batch_s(op);
  }
  const double cpu_s = *profile.host.process_cpu_cores * sink.step_s - known_s;
  return cpu_s >= kLeastShare * sink.step_s ? cpu_s : 0;
}

}  // namespace headrace::analysis
