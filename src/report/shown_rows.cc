#include "shown_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace headrace::report {
namespace {

/// "index" of "index[12]"; "" if the name is none of a numbered queue.
std::string numbered_kind(const std::string& name) {
  const std::size_t at = name.find('[');
  if (at == std::string::npos || at == 0 || name.back() != ']' || at + 2 >= name.size()) return "";
  const bool digits = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 1, name.end() - 1,
                                  [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name.substr(0, at) : "";
}

template <class Number>
void add_known(std::optional<Number>& sum, const std::optional<Number>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

void add_to(profile::QueueProfile& sum, const profile::QueueProfile& queue, double part) {
  sum.occupancy.resize(std::max(sum.occupancy.size(), queue.occupancy.size()), 0);
  for (std::size_t i = 0; i < queue.occupancy.size(); ++i) sum.occupancy[i] += part * queue.occupancy[i];
  sum.mean += part * queue.mean;
  sum.empty_share += part * queue.empty_share;
  sum.full_share += part * queue.full_share;
  add_known(sum.puts, queue.puts);
  add_known(sum.gets, queue.gets);
  add_known(sum.put_wait_s, queue.put_wait_s);
  add_known(sum.get_wait_s, queue.get_wait_s);
}

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

std::vector<QueueGroup> queue_groups(const std::vector<profile::QueueProfile>& queues,
                                     std::size_t most_equal) {
  std::map<std::string, std::size_t> counts;
  for (const profile::QueueProfile& queue : queues) ++counts[numbered_kind(queue.name)];
  std::vector<QueueGroup> groups;
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const std::string kind = numbered_kind(queues[i].name);
    if (kind.empty() || counts[kind] <= most_equal) {
      groups.push_back({queues[i].name, {i}});
      continue;
    }
    const auto [group, is_new] = group_of.try_emplace(kind, groups.size());
    if (is_new) groups.push_back({kind + " (" + std::to_string(counts[kind]) + " queues)", {}});
    groups[group->second].members.push_back(i);
  }
  return groups;
}

std::vector<profile::QueueProfile> folded(const std::vector<profile::QueueProfile>& queues,
                                          std::size_t most_equal) {
  std::vector<profile::QueueProfile> rows;
  for (const QueueGroup& group : queue_groups(queues, most_equal)) {
    const profile::QueueProfile& first = queues[group.members.front()];
    if (group.members.size() == 1) {
      rows.push_back(first);
      continue;
    }
    profile::QueueProfile sum;
    sum.name = group.name;
    sum.from = first.from;
    sum.from_operators = first.from_operators;
    sum.to = first.to;
    sum.to_operators = first.to_operators;
    sum.to_sink = first.to_sink;
    sum.capacity = first.capacity;
    sum.unit = first.unit;
    sum.levels_per_bin = first.levels_per_bin;
    for (const std::size_t i : group.members)
      add_to(sum, queues[i], 1.0 / static_cast<double>(group.members.size()));
    rows.push_back(std::move(sum));
  }
  return rows;
}

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
