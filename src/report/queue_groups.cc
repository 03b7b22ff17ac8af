#include "queue_groups.h"

#include <algorithm>
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

}  // namespace headrace::report
