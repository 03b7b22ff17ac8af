#include "loader_sections.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "table.h"
#include "wording.h"
#include "worker_states.h"

namespace headrace::report {

using analysis::duration;
using analysis::memory_size;
using analysis::percent;

namespace {

/// As many rows as can be compared at a glance.
constexpr std::size_t kMaxWorkers = 8;
constexpr std::size_t kSlowestShown = 4;
constexpr std::size_t kFastestShown = 2;

/// As its user would write it; "" if the framework's own default, or no value, needs no word.
std::string worth_saying(const profile::LoaderParameter& parameter) {
  return parameter.value == parameter.usual ? "" : profile::as_written(parameter.value);
}

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

std::string settings_line(const profile::Profile& profile, std::size_t width) {
  std::string text;
  if (!profile.model) return text;
  for (const profile::LoaderParameter& parameter : profile.model->parameters) {
    const std::string value = worth_saying(parameter);
    if (value.empty()) continue;
    text += (text.empty() ? "" : ", ") + shortened(parameter.name, 40) + "=" + shortened(value, 40);
  }
  return shortened(text, width);
}

Lines worker_section(const profile::Profile& profile, std::size_t width) {
  std::vector<WorkerRow> rows = worker_rows(profile);
  if (rows.size() < 2) return {};
  std::string between;
  if (rows.size() > kMaxWorkers) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const WorkerRow& a, const WorkerRow& b) { return a.batch_s() > b.batch_s(); });
    const auto first = rows.begin() + kSlowestShown;
    const auto last = rows.end() - kFastestShown;
    between = fmt::format("  {} more, {} to {} a batch", last - first, duration((last - 1)->batch_s()),
                          duration(first->batch_s()));
    rows.erase(first, last);
  }
  const bool sharded =
      std::any_of(rows.begin(), rows.end(), [](const WorkerRow& row) { return !row.shard.empty(); });
  Table table({{"", 9, false, true},
               {"batches", 4, true, false},
               {"a batch", 8, true, false},
               {"busy", 7, true, false},
               {"blocked", 5, true, false},
               {"CPU", 3, true, false},
               {sharded ? "part" : "", 2, false, false}});
  for (const WorkerRow& row : rows) {
    table.add({"worker " + std::to_string(row.id), number(row.batches, 0), duration(row.batch_s()),
               percent(std::min(1.0, row.states.busy)), percent(row.states.blocked_out),
               row.cpu_known && row.busy_s > 0 ? percent(std::min(1.0, row.cpu_s / row.busy_s)) : "-",
               row.shard});
  }
  Lines lines{"WORKERS"};
  add_table(lines, table, width);
  if (!between.empty()) lines.push_back(shortened(between, width));
  return lines;
}

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

std::string handoff_sentence(const profile::Profile& profile) {
  if (!profile.handoff || profile.handoff->batches == 0) return "";
  const profile::Handoff& handoff = *profile.handoff;
  const std::string tensors = number(handoff.tensors, 0);
  std::string text = fmt::format(
      "each batch sends {} through a pipe and {} tensor{} through shared memory; pickling {} in the worker, "
      "receiving {} ({} of CPU) in the training loop's process",
      memory_size(handoff.message_bytes), tensors, tensors == "1" ? "" : "s", duration(handoff.pickle_s),
      duration(handoff.receive_s), duration(handoff.receive_cpu_s));
  if (handoff.unused_batches > 0) {
    text += fmt::format("; {} {} prefetched and never used", handoff.unused_batches,
                        handoff.unused_batches == 1 ? "batch was" : "batches were");
  }
  return text;
}

}  // namespace headrace::report
