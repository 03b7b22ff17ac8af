#include "worker_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace headrace::report {

std::vector<WorkerRow> worker_rows(const profile::Profile& profile) {
  std::map<int, WorkerRow> rows;
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::WorkerProfile& worker : op.per_worker) {
      if (!worker.worker_id || *worker.worker_id < 0) continue;  // below 0: the training loop's own process
      const int id = static_cast<int>(*worker.worker_id);
      const auto [at, is_new] = rows.try_emplace(id);
      WorkerRow& row = at->second;
      if (is_new) {
        row.id = id;
        row.states.blocked_in = row.states.blocked_out = row.states.idle = 1;
      }
      if (!worker.shard.empty()) row.shard = worker.shard;
      const double per_batch = op.items_per_batch > 0 ? op.items_per_batch : 1;
      row.batches = std::max(row.batches, static_cast<double>(worker.items) / per_batch);
      row.busy_s += worker.busy_s;
      row.cpu_s += worker.cpu_s.value_or(0);
      row.cpu_known = row.cpu_known && worker.cpu_s.has_value();
      row.states.busy += worker.states.busy;
      // To an operator, a sibling at work before or behind it is a wait; the worker waits only where all do.
      row.states.blocked_in = std::min(row.states.blocked_in, worker.states.blocked_in);
      row.states.blocked_out = std::min(row.states.blocked_out, worker.states.blocked_out);
      row.states.idle = std::min(row.states.idle, worker.states.idle);
    }
  }
  std::vector<WorkerRow> by_number;
  by_number.reserve(rows.size());
  for (auto& [id, row] : rows) by_number.push_back(std::move(row));
  return by_number;
}

}  // namespace headrace::report
