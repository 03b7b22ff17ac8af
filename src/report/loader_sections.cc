#include "loader_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "headrace/analysis/words.h"
#include "printable.h"
#include "table.h"

namespace headrace::report {

using analysis::duration;
using analysis::percent;

namespace {

/// As many rows as can be compared at a glance.
constexpr std::size_t kMostWorkers = 8;
constexpr std::size_t kSlowestShown = 4;
constexpr std::size_t kFastestShown = 2;
constexpr std::size_t kMostEqualQueues = 4;

/// PyTorch's own defaults; what is set so needs no word.
bool goes_without_saying(const profile::Setting& setting) {
  static const std::map<std::string, std::string> defaults{
      {"in_order", "True"},     {"persistent_workers", "False"}, {"pin_memory", "False"},
      {"start_method", "fork"}, {"dataset_kind", "map"},         {"sharing_strategy", "file_descriptor"},
      {"collates", "True"}};
  if (setting.parameter == "framework" || setting.value == "None" || setting.value.empty()) return true;
  const auto known = defaults.find(setting.parameter);
  return known != defaults.end() && known->second == setting.value;
}

struct WorkerRow {
  int id = 0;
  std::string shard;
  double batches = 0;
  double busy_s = 0;
  double cpu_s = 0;
  bool cpu_known = true;
  profile::States states;  // of the operators together

  double batch_s() const { return batches > 0 ? busy_s / batches : 0; }
};

/// The operators of one worker process are one row: they run in turn.
std::vector<WorkerRow> rows_of(const profile::Profile& profile) {
  std::map<int, WorkerRow> rows;
  for (const profile::OperatorProfile& op : profile.operators) {
    for (const profile::WorkerProfile& worker : op.per_worker) {
      if (!worker.worker_id) continue;
      WorkerRow& row = rows[static_cast<int>(*worker.worker_id)];
      row.id = static_cast<int>(*worker.worker_id);
      if (!worker.shard.empty()) row.shard = worker.shard;
      const double per_batch = op.items_per_batch > 0 ? op.items_per_batch : 1;
      row.batches = std::max(row.batches, static_cast<double>(worker.items) / per_batch);
      row.busy_s += worker.busy_s;
      row.cpu_s += worker.cpu_s.value_or(0);
      row.cpu_known = row.cpu_known && worker.cpu_s.has_value();
      row.states.busy += worker.states.busy;
      row.states.blocked_out = std::max(row.states.blocked_out, worker.states.blocked_out);
    }
  }
  std::vector<WorkerRow> in_order;
  for (auto& [id, row] : rows) in_order.push_back(std::move(row));
  return in_order;
}

/// "index" of "index[12]"; "" where the name is none of a numbered queue.
std::string numbered_kind(const std::string& name) {
  const std::size_t at = name.find('[');
  if (at == std::string::npos || at == 0 || name.back() != ']' || at + 2 >= name.size()) return "";
  const bool digits = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 1, name.end() - 1,
                                  [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name.substr(0, at) : "";
}

void add_to(profile::QueueProfile& sum, const profile::QueueProfile& queue, double part) {
  sum.occupancy.resize(std::max(sum.occupancy.size(), queue.occupancy.size()), 0);
  for (std::size_t i = 0; i < queue.occupancy.size(); ++i) sum.occupancy[i] += part * queue.occupancy[i];
  sum.mean += part * queue.mean;
  sum.empty_share += part * queue.empty_share;
  sum.full_share += part * queue.full_share;
}

std::string bytes_of(double bytes) {
  char text[48];
  const char* unit = bytes >= 999.5e6 ? "GB" : bytes >= 999.5e3 ? "MB" : bytes >= 999.5 ? "kB" : "B";
  const double value = bytes >= 999.5e6   ? bytes / 1e9
                       : bytes >= 999.5e3 ? bytes / 1e6
                       : bytes >= 999.5   ? bytes / 1e3
                                          : bytes;
  std::snprintf(text, sizeof text, "%.*f %s", value < 9.95 && bytes >= 999.5 ? 1 : 0, value, unit);
  return std::isfinite(bytes) ? text : "-";
}

}  // namespace

std::string settings_line(const profile::Profile& profile, std::size_t width) {
  std::string text;
  const auto add = [&text](const profile::Setting& setting) {
    if (goes_without_saying(setting)) return;
    text +=
        (text.empty() ? "" : ", ") + shortened(setting.parameter, 40) + "=" + shortened(setting.value, 40);
  };
  constexpr const char* kFirst[] = {"num_workers", "prefetch_factor", "batch_size"};
  const auto comes_first = [&](const profile::Setting& setting) {
    return std::find(std::begin(kFirst), std::end(kFirst), setting.parameter) != std::end(kFirst);
  };
  for (const char* parameter : kFirst) {
    for (const profile::Setting& setting : profile.settings) {
      if (setting.parameter == parameter) add(setting);
    }
  }
  for (const profile::Setting& setting : profile.settings) {
    if (!comes_first(setting)) add(setting);
  }
  return shortened(text, width);
}

Lines worker_section(const profile::Profile& profile, std::size_t width) {
  std::vector<WorkerRow> rows = rows_of(profile);
  if (rows.size() < 2) return {};
  std::string between;
  if (rows.size() > kMostWorkers) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const WorkerRow& a, const WorkerRow& b) { return a.batch_s() > b.batch_s(); });
    const auto first = rows.begin() + kSlowestShown;
    const auto last = rows.end() - kFastestShown;
    between = "  " + std::to_string(last - first) + " more, " + duration((last - 1)->batch_s()) + " to " +
              duration(first->batch_s()) + " a batch";
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
    char batches[32];
    std::snprintf(batches, sizeof batches, "%.0f", row.batches);
    table.add({"worker " + std::to_string(row.id), batches, duration(row.batch_s()),
               percent(std::min(1.0, row.states.busy)), percent(row.states.blocked_out),
               row.cpu_known && row.busy_s > 0 ? percent(std::min(1.0, row.cpu_s / row.busy_s)) : "-",
               row.shard});
  }
  Lines lines = table.lines(width - 2);
  for (std::string& line : lines) line.insert(0, 2, ' ');
  lines.insert(lines.begin(), "WORKERS");
  if (!between.empty()) lines.push_back(shortened(between, width));
  return lines;
}

std::vector<profile::QueueProfile> folded(const std::vector<profile::QueueProfile>& queues) {
  std::map<std::string, std::size_t> counts;
  for (const profile::QueueProfile& queue : queues) ++counts[numbered_kind(queue.name)];
  std::vector<profile::QueueProfile> rows;
  std::map<std::string, std::size_t> row_of;
  for (const profile::QueueProfile& queue : queues) {
    const std::string kind = numbered_kind(queue.name);
    if (kind.empty() || counts[kind] <= kMostEqualQueues) {
      rows.push_back(queue);
      continue;
    }
    const auto [row, is_new] = row_of.try_emplace(kind, rows.size());
    if (is_new) {
      profile::QueueProfile sum;
      sum.name = kind + " (" + std::to_string(counts[kind]) + " queues)";
      sum.capacity = queue.capacity;
      rows.push_back(std::move(sum));
    }
    add_to(rows[row->second], queue, 1.0 / static_cast<double>(counts[kind]));
  }
  return rows;
}

std::string handoff_sentence(const profile::Profile& profile) {
  if (!profile.handoff || profile.handoff->batches == 0) return "";
  const profile::Handoff& handoff = *profile.handoff;
  char tensors[48];
  std::snprintf(tensors, sizeof tensors, "%.0f", handoff.tensors);
  std::string text = "each batch sends " + bytes_of(handoff.message_bytes) + " through a pipe and " +
                     tensors + (std::string(tensors) == "1" ? " tensor" : " tensors") +
                     " through shared memory; pickling " + duration(handoff.pickle_s) +
                     " in the worker, receiving " + duration(handoff.receive_s) + " (" +
                     duration(handoff.receive_cpu_s) + " of CPU) in the training loop's process";
  if (handoff.unused_batches > 0) {
    text += "; " + std::to_string(handoff.unused_batches) +
            (handoff.unused_batches == 1 ? " batch was" : " batches were") + " prefetched and never used";
  }
  return text;
}

}  // namespace headrace::report
