#include "worker_processes.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace headrace::analysis {

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
