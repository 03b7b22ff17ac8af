#include "headrace/loader_files/file_table.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cluster_tables.h"
#include "csv_table.h"
#include "headrace/loader_files/batch_records.h"
#include "headrace/loader_files/step_trace_file.h"
#include "headrace/profile/errors.h"
#include "memory_tables.h"
#include "operator_tables.h"
#include "rank_getnext.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

FileTable steps_table(const std::string& path) {
  const StepTraceFile file = read_step_trace(read_text(path), path);
  Integers step;
  Numbers start, total, gap, compute, tail;
  for (const StepRow& row : file.steps) {
    step.push_back(row.number);
    start.push_back(row.start_s);
    total.push_back(row.total_s);
    gap.push_back(row.interval_s);
    compute.push_back(row.forward_backward_s.value_or(kNone));
    tail.push_back(row.tail_s.value_or(kNone));
  }
  return {{{"step", std::move(step)},
           {"start_s", std::move(start)},
           {"total_s", std::move(total)},
           {"iteration_gap_s", std::move(gap)},
           {"forward_backward_s", std::move(compute)},
           {"tail_s", std::move(tail)}},
          file.notes};
}

FileTable collectives_table(const std::string& path) {
  const StepTraceFile file = read_step_trace(read_text(path), path);
  Integers step;
  Texts name;
  Numbers start, takes;
  for (const StepRow& row : file.steps) {
    for (std::size_t i = 0; i < row.collectives.size(); ++i) {
      if (!row.collectives[i]) continue;
      step.push_back(row.number);
      name.push_back(file.collectives[i]);
      start.push_back(row.collectives[i]->start_s);
      takes.push_back(row.collectives[i]->takes_s);
    }
  }
  return {{{"step", std::move(step)},
           {"name", std::move(name)},
           {"start_s", std::move(start)},
           {"total_s", std::move(takes)}},
          file.notes};
}

FileTable batches_table(const std::string& path) {
  const BatchRecords file = read_batch_records(read_text(path), path);
  Integers batch;
  Numbers end, wait, push, level, capacity;
  const auto seconds = [](const std::optional<double>& ms) { return ms ? *ms * kMillisecond : kNone; };
  const auto count = [](const std::optional<std::int64_t>& value) {
    return value ? static_cast<double>(*value) : kNone;
  };
  for (const BatchRecord& row : file.batches) {
    batch.push_back(row.batch);
    end.push_back(seconds(row.end_ms));
    wait.push_back(seconds(row.wait_ms));
    push.push_back(seconds(row.push_ms));
    level.push_back(count(row.level));
    capacity.push_back(count(row.capacity));
  }
  return {{{"batch", std::move(batch)},
           {"end_s", std::move(end)},
           {"wait_s", std::move(wait)},
           {"push_s", std::move(push)},
           {"level", std::move(level)},
           {"capacity", std::move(capacity)}},
          file.notes};
}

FileTable getnext_table(const RankFolder& folder) {
  const GetNextFile file = getnext_of(folder);
  Texts node;
  Numbers start, total;
  Integers level;
  for (const GetNext& call : file.calls) {
    node.push_back(call.node);
    start.push_back(call.start_s);
    total.push_back(call.end_s - call.start_s);
    level.push_back(call.level);
  }
  return {{{"node", std::move(node)},
           {"start_s", std::move(start)},
           {"total_s", std::move(total)},
           {"level", std::move(level)}},
          file.notes};
}

/// Stages of the pipeline on the host, as the host profiler counted them.
FileTable dataset_table(const RankFolder& folder) {
  constexpr std::array kNames{
      Renamed{"Operation", "operation"},         Renamed{"Stage", "stage"},
      Renamed{"Occurrences", "count"},           Renamed{"Avg. time(us)", "mean_s", 1e-6},
      Renamed{"Avg. time (us)", "mean_s", 1e-6}, Renamed{"Custom Info", "info"}};
  return csv_table(folder.path(FileKind::dataset), kNames);
}

struct NamedTable {
  std::string_view name;
  FileKind kind;
  FileTable (*read)(const RankFolder&);
};

template <FileKind kKind>
FileTable as_csv(const RankFolder& folder) {
  return csv_table(folder.path(kKind));
}
template <FileKind kKind>
FileTable as_figures(const RankFolder& folder) {
  return json_figures(folder.path(kKind));
}

const std::array kTables{
    NamedTable{"steps", FileKind::step_trace,
               [](const RankFolder& folder) { return steps_table(folder.path(FileKind::step_trace)); }},
    NamedTable{"collectives", FileKind::step_trace,
               [](const RankFolder& folder) { return collectives_table(folder.path(FileKind::step_trace)); }},
    NamedTable{"host_queue", FileKind::device_queue,
               [](const RankFolder& folder) { return batches_table(folder.path(FileKind::device_queue)); }},
    NamedTable{
        "batches", FileKind::dataset_iterator,
        [](const RankFolder& folder) { return batches_table(folder.path(FileKind::dataset_iterator)); }},
    NamedTable{"getnext", FileKind::getnext_ascend, getnext_table},
    NamedTable{"getnext", FileKind::getnext_gpu, getnext_table},
    NamedTable{"getnext", FileKind::getnext_raw, getnext_table},
    NamedTable{"aicore_types", FileKind::aicore_types, aicore_types},
    NamedTable{"aicore_operators", FileKind::aicore_details, aicore_operators},
    NamedTable{"aicpu_operators", FileKind::aicpu, aicpu_operators},
    NamedTable{"gpu_types", FileKind::gpu_types, as_csv<FileKind::gpu_types>},
    NamedTable{"gpu_operators", FileKind::gpu_details, as_csv<FileKind::gpu_details>},
    NamedTable{"gpu_activity", FileKind::gpu_activity, as_csv<FileKind::gpu_activity>},
    NamedTable{"cpu_types", FileKind::cpu_types, as_csv<FileKind::cpu_types>},
    NamedTable{"cpu_operators", FileKind::cpu_details, as_csv<FileKind::cpu_details>},
    NamedTable{"memory", FileKind::memory_summary, as_figures<FileKind::memory_summary>},
    NamedTable{"memory_curve", FileKind::memory_details, memory_curve},
    NamedTable{"memory_breakdown", FileKind::memory_details, memory_breakdown},
    NamedTable{"flops", FileKind::flops_summary, as_figures<FileKind::flops_summary>},
    NamedTable{"parallel_steps", FileKind::cluster, parallel_steps_table},
    NamedTable{"communication", FileKind::collectives, communication_table},
    NamedTable{"links", FileKind::collectives, links_table},
    NamedTable{"communication_operators", FileKind::collectives, communication_operators_table},
    NamedTable{"dataset", FileKind::dataset, dataset_table},
    NamedTable{"host_info", FileKind::host_info, as_csv<FileKind::host_info>},
};

}  // namespace

std::size_t FileTable::rows() const noexcept {
  if (columns.empty()) return 0;
  return std::visit([](const auto& values) { return values.size(); }, columns.front().values);
}

std::vector<std::string> table_names(const RankFolder& folder) {
  std::vector<std::string> names;
  for (const NamedTable& table : kTables) {
    const bool is_said = std::find(names.begin(), names.end(), table.name) != names.end();
    if (!is_said && !folder.path(table.kind).empty()) names.emplace_back(table.name);
  }
  return names;
}

FileTable read_table(const RankFolder& folder, std::string_view name) {
  for (const NamedTable& table : kTables) {
    if (table.name == name && !folder.path(table.kind).empty()) return table.read(folder);
  }
  std::string names;
  for (const std::string& each : table_names(folder)) names += (names.empty() ? "" : ", ") + each;
  throw UsageError("no table " + std::string(name) + "; the files make " + (names.empty() ? "none" : names));
}

}  // namespace headrace::loader_files
