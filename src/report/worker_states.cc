#include "worker_states.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace headrace::report {
namespace {

/// Share of the workers' time in the other operators of the thread.
double others_of(const profile::Profile& profile, std::size_t index) {
  const profile::OperatorProfile& op = profile.operators[index];
  double sum = 0;
  for (std::size_t i = 0; i < profile.operators.size() && op.segment >= 0; ++i) {
    const profile::OperatorProfile& other = profile.operators[i];
    if (i == index || other.segment != op.segment || !std::isfinite(other.states.busy)) continue;
    sum += std::max(0.0, other.states.busy);
  }
  return sum;
}

/// Moves as much of `share` as there is from `state`.
void move(double& state, double& share, double& to) {
  const double moved = std::clamp(share, 0.0, std::max(0.0, state));
  state -= moved;
  share -= moved;
  to += moved;
}

}  // namespace

ShownStates shown_states(const profile::Profile& profile, std::size_t index) {
  const profile::States& states = profile.operators[index].states;
  ShownStates shown;
  shown.known = states.busy + states.blocked_in + states.blocked_out + states.idle > 0;
  shown.busy = states.busy;
  shown.blocked_in = states.blocked_in;
  shown.blocked_out = states.blocked_out;
  // An operator's own states count a worker that is at another operator as waiting or as blocked.
  double others = others_of(profile, index);
  const bool mostly_out = shown.blocked_out > shown.blocked_in;
  move(mostly_out ? shown.blocked_out : shown.blocked_in, others, shown.elsewhere);
  move(mostly_out ? shown.blocked_in : shown.blocked_out, others, shown.elsewhere);
  return shown;
}

bool any_elsewhere(const profile::Profile& profile) {
  constexpr double kWorthAColumn = 0.005;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (shown_states(profile, i).elsewhere > kWorthAColumn) return true;
  }
  return false;
}

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
