#include "headrace/analysis/read/cores.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "headrace/analysis/read/demand.h"
#include "numbers.h"

namespace headrace::analysis {
namespace {

/// Source: docs/benchmarks.md, "CPU work beside CPU work".
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

double pool_cpu_s(const profile::Profile& profile) {
  const profile::SinkProfile& sink = profile.sink;
  if (!profile.host.process_cpu_cores || !sink.compute_cpu_s || !(sink.step_s > 0)) return 0;
  double known_s = *sink.compute_cpu_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    if (op.executor == profile::Executor::process) continue;
    known_s += op.cpu_s ? cpu_per_batch_s(op) : std::max(0.0, op.demand_s) * op.workers;
  }
  const double cpu_s = *profile.host.process_cpu_cores * sink.step_s - known_s;
  return cpu_s >= kHardly * sink.step_s ? cpu_s : 0;
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

double WorkerProcesses::elsewhere_share() const noexcept {
  if (count < 2 || cpu_s <= 0) return 0;
  return 1 - std::min(1.0, in_workers_s / cpu_s);
}

WorkerProcesses worker_processes(const profile::Profile& profile) {
  WorkerProcesses all;
  std::map<std::int64_t, double> process_cpu_s;
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::WorkerProfile& worker : op.per_worker) {
      if (!worker.process_cpu_s || !worker.cpu_s) continue;
      double& cpu_s = process_cpu_s[worker.worker_id.value_or(worker.pid)];
      cpu_s = std::max(cpu_s, *worker.process_cpu_s);
      all.in_workers_s += *worker.cpu_s;
      all.threads = std::max(all.threads, static_cast<double>(worker.process_threads.value_or(1)));
    }
  }
  for (const auto& [process, cpu_s] : process_cpu_s) all.cpu_s += cpu_s;
  all.count = static_cast<int>(process_cpu_s.size());
  return all;
}

}  // namespace headrace::analysis
