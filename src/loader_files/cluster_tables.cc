#include "cluster_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "csv_table.h"
#include "headrace/loader_files/collectives_file.h"
#include "headrace/loader_files/parallel_steps_file.h"
#include "headrace/loader_files/step_trace_file.h"
#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr std::string_view kTimeEnding = "_time";

CollectivesFile collectives_of(const RankFolder& folder) {
  const std::string path = folder.path(FileKind::collectives);
  return read_collectives(read_text(path), path);
}

/// "computation_time" is milliseconds: computation_s.
std::string in_seconds(const std::string& name) {
  return name.ends_with(kTimeEnding) ? name.substr(0, name.size() - kTimeEnding.size()) + "_s" : name;
}
double unit_of(const std::string& name) { return name.ends_with(kTimeEnding) ? kMillisecond : 1; }

/// A row of the table of ranks; NaN: no file tells.
struct RankRow {
  int rank = 0;
  std::string mode;
  double stage = kNone;
  std::array<double, 12> figures;
};

enum Figure : std::uint8_t {
  kTotal,
  kGap,
  kCompute,
  kTail,
  kComputation,
  kAlone,
  kStage,
  kReceive,
  kCollective,
  kCommunication,
  kWait,
  kFlops,
};

constexpr std::array<std::string_view, 12> kFigureNames{
    "total_s",         "iteration_gap_s", "forward_backward_s",
    "tail_s",          "computation_s",   "communication_alone_s",
    "stage_s",         "receive_alone_s", "collective_communication_alone_s",
    "communication_s", "wait_s",          "gflops"};

/// The file's own average, else its only step.
double mean_of(const ParallelStepsFile& file, std::size_t column) {
  if (file.average) return (*file.average)[column];
  return file.steps.empty() ? kNone : file.steps.front()[column];
}

void add_parallel(const std::string& path, RankRow& row) {
  if (const auto place = parallel_place(std::filesystem::path(path).filename().string())) {
    row.mode = place->mode;
    row.stage = place->stage();
  }
  const ParallelStepsFile file = read_parallel_steps(read_text(path), path);
  for (std::size_t column = 0; column < file.columns.size(); ++column) {
    const auto found = std::find(kFigureNames.begin(), kFigureNames.end(), in_seconds(file.columns[column]));
    if (found == kFigureNames.end() || !file.columns[column].ends_with(kTimeEnding)) continue;
    row.figures[static_cast<std::size_t>(found - kFigureNames.begin())] =
        mean_of(file, column) * kMillisecond;
  }
}

void add_steps(const std::string& path, RankRow& row) {
  const StepTraceFile file = read_step_trace(read_text(path), path);
  StepRow mean;
  if (file.average && file.average->total_s > 0) {
    mean = *file.average;
  } else {
    const auto count = static_cast<double>(file.steps.size());
    for (const StepRow& step : file.steps) {
      mean.total_s += step.total_s / count;
      mean.interval_s += step.interval_s / count;
      if (step.forward_backward_s)
        mean.forward_backward_s = mean.forward_backward_s.value_or(0) + *step.forward_backward_s / count;
      if (step.tail_s) mean.tail_s = mean.tail_s.value_or(0) + *step.tail_s / count;
    }
  }
  row.figures[kTotal] = mean.total_s;
  row.figures[kGap] = mean.interval_s;
  row.figures[kCompute] = mean.forward_backward_s.value_or(kNone);
  row.figures[kTail] = mean.tail_s.value_or(kNone);
}

void add_collectives(const RankFolder& folder, RankRow& row) {
  const CollectivesFile file = collectives_of(folder);
  const auto count = static_cast<double>(file.steps.size());
  double communication_s = 0;
  double wait_s = 0;
  for (const CollectivesStep& step : file.steps) {
    communication_s += step.cost.communication_s / count;
    wait_s += step.cost.wait_s / count;
  }
  row.figures[kCommunication] = file.steps.empty() ? file.average->cost.communication_s : communication_s;
  row.figures[kWait] = file.steps.empty() ? file.average->cost.wait_s : wait_s;
}

void add_flops(const std::string& path, RankRow& row) {
  const JsonDocument document(read_text(path), path);
  const std::optional<Json> value = member(document.root(), "FLOPS");
  if (value) row.figures[kFlops] = number_of(*value).value_or(kNone);
}

template <class Add>
void try_file(const RankFolder& folder, FileKind kind, std::vector<std::string>& notes, Add&& add) {
  const std::string path = folder.path(kind);
  if (path.empty()) return;
  try {
    add(path);
  } catch (const FormatError& error) {
    notes.push_back(std::filesystem::path(path).filename().string() + " could not be read: expected " +
                    error.expected());
  }
}

}  // namespace

FileTable communication_table(const RankFolder& folder) {
  const CollectivesFile file = collectives_of(folder);
  Integers step;
  Numbers communication, wait, share;
  for (const CollectivesStep& each : file.steps) {
    const double total_s = each.cost.communication_s + each.cost.wait_s;
    step.push_back(each.number);
    communication.push_back(each.cost.communication_s);
    wait.push_back(each.cost.wait_s);
    share.push_back(total_s > 0 ? each.cost.wait_s / total_s : kNone);
  }
  return {{{"step", std::move(step)},
           {"communication_s", std::move(communication)},
           {"wait_s", std::move(wait)},
           {"wait_share", std::move(share)}},
          file.notes};
}

FileTable links_table(const RankFolder& folder) {
  const CollectivesFile file = collectives_of(folder);
  Integers step, source, destination;
  Texts type;
  Numbers total, bytes, speed, wait;
  for (const CollectivesStep& each : file.steps) {
    for (const LinkUse& link : each.cost.links) {
      step.push_back(each.number);
      source.push_back(link.source);
      destination.push_back(link.destination);
      type.push_back(link.type);
      total.push_back(link.total_s);
      bytes.push_back(link.bytes);
      speed.push_back(link.bytes_per_s() / 1e9);
      wait.push_back(link.wait_s.value_or(kNone));
    }
  }
  return {{{"step", std::move(step)},
           {"source", std::move(source)},
           {"destination", std::move(destination)},
           {"type", std::move(type)},
           {"total_s", std::move(total)},
           {"bytes", std::move(bytes)},
           {"bandwidth_gbps", std::move(speed)},
           {"wait_s", std::move(wait)}},
          file.notes};
}

FileTable communication_operators_table(const RankFolder& folder) {
  const CollectivesFile file = collectives_of(folder);
  Integers step;
  Texts name;
  Numbers communication, wait;
  for (const CollectivesStep& each : file.steps) {
    for (const CollectiveOperator& op : each.operators) {
      step.push_back(each.number);
      name.push_back(op.name);
      communication.push_back(op.cost.communication_s);
      wait.push_back(op.cost.wait_s);
    }
  }
  return {{{"step", std::move(step)},
           {"operator", std::move(name)},
           {"communication_s", std::move(communication)},
           {"wait_s", std::move(wait)}},
          file.notes};
}

FileTable parallel_steps_table(const RankFolder& folder) {
  const std::string path = folder.path(FileKind::cluster);
  const ParallelStepsFile file = read_parallel_steps(read_text(path), path);
  FileTable table;
  Integers step;
  for (std::size_t i = 0; i < file.steps.size(); ++i) step.push_back(static_cast<std::int64_t>(i) + 1);
  table.columns.push_back({"step", std::move(step)});
  for (std::size_t column = 0; column < file.columns.size(); ++column) {
    const std::string name = in_seconds(file.columns[column]);
    if (name.empty() || column_of(table, name) != nullptr) continue;
    Numbers values;
    for (const std::vector<double>& row : file.steps)
      values.push_back(row[column] * unit_of(file.columns[column]));
    table.columns.push_back({name, std::move(values)});
  }
  return table;
}

bool has_ranks_table(const ProfilerFolder& folder) {
  const auto with = std::count_if(folder.ranks.begin(), folder.ranks.end(), [](const RankFolder& rank) {
    return !rank.path(FileKind::step_trace).empty() || !rank.path(FileKind::cluster).empty() ||
           !rank.path(FileKind::collectives).empty();
  });
  return with > 1;
}

FileTable ranks_table(const ProfilerFolder& folder) {
  FileTable table;
  std::vector<RankRow> rows;
  for (const RankFolder& rank : folder.ranks) {
    RankRow row;
    row.rank = rank.rank;
    row.figures.fill(kNone);
    try_file(rank, FileKind::step_trace, table.notes, [&](const std::string& path) { add_steps(path, row); });
    try_file(rank, FileKind::cluster, table.notes, [&](const std::string& path) { add_parallel(path, row); });
    try_file(rank, FileKind::collectives, table.notes,
             [&](const std::string&) { add_collectives(rank, row); });
    try_file(rank, FileKind::flops_summary, table.notes,
             [&](const std::string& path) { add_flops(path, row); });
    rows.push_back(std::move(row));
  }
  Integers number;
  Texts mode;
  Numbers stage;
  for (const RankRow& row : rows) {
    number.push_back(row.rank);
    mode.push_back(row.mode);
    stage.push_back(row.stage);
  }
  table.columns = {{"rank", std::move(number)}, {"mode", std::move(mode)}, {"stage", std::move(stage)}};
  for (std::size_t figure = 0; figure < kFigureNames.size(); ++figure) {
    Numbers values;
    for (const RankRow& row : rows) values.push_back(row.figures[figure]);
    if (std::any_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
      table.columns.push_back({std::string(kFigureNames[figure]), std::move(values)});
  }
  return table;
}

}  // namespace headrace::loader_files
