#include "headrace/loader_files/file_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "headrace/loader_files/batch_records.h"
#include "headrace/loader_files/getnext_file.h"
#include "headrace/loader_files/step_trace_file.h"
#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kMillisecond = 1e-3;

/// Tables of operators have ten or twenty.
constexpr std::size_t kMostTableColumns = 1024;

/// A column of a file under another name, in other units.
struct Renamed {
  std::string_view from;
  std::string_view to;
  double factor = 1;
};

constexpr std::array kAicoreTypes{Renamed{"op_type", "type"}, Renamed{"kernel_type", "type"},
                                  Renamed{"execution_time", "total_s", kMillisecond},
                                  Renamed{"total_time", "total_s", kMillisecond},
                                  Renamed{"execution_frequency", "count"}};
constexpr std::array kAicoreDetails{Renamed{"full_op_name", "operator"},
                                    Renamed{"full_kernel_name", "operator"},
                                    Renamed{"execution_time", "mean_s", kMillisecond}};
constexpr std::array kAicpu{Renamed{"serial_number", "number"},
                            Renamed{"kernel_type", "type"},
                            Renamed{"node_type_name", "type"},
                            Renamed{"total_time", "total_s", kMillisecond},
                            Renamed{"dispatch_time", "dispatch_s", kMillisecond},
                            Renamed{"execution_time", "execution_s", kMillisecond},
                            Renamed{"run_start", "start_s", 1e-6},
                            Renamed{"run_end", "end_s", 1e-6}};

/// "total_time(us)" is total_time_s.
Renamed by_unit(std::string_view name, std::string& memory) {
  for (const auto& [unit, factor] :
       {std::pair("(us)", 1e-6), std::pair("(ms)", 1e-3), std::pair("(ns)", 1e-9)}) {
    if (!name.ends_with(unit)) continue;
    memory = std::string(name.substr(0, name.size() - 4)) + "_s";
    return {name, memory, factor};
  }
  return {name, name, 1};
}

template <class Names>
Renamed renamed(std::string_view name, const Names& names, std::string& memory) {
  for (const Renamed& each : names) {
    if (each.from == name) return each;
  }
  return by_unit(name, memory);
}

FileColumn typed(std::string name, Texts texts, double factor) {
  Integers whole;
  Numbers numbers;
  bool all_whole = factor == 1;
  bool all_numbers = true;
  for (const std::string& text : texts) {
    const std::optional<double> value = number(text);
    const std::optional<std::int64_t> count = whole_number(text);
    all_whole = all_whole && count.has_value();
    all_numbers = all_numbers && (value || text.empty() || text == "-");
    whole.push_back(count.value_or(0));
    numbers.push_back(value ? *value * factor : kNone);
  }
  if (texts.empty())
    return {std::move(name), factor == 1 ? FileColumn{"", Texts{}}.values : FileColumn{"", Numbers{}}.values};
  if (all_whole) return {std::move(name), std::move(whole)};
  if (all_numbers) return {std::move(name), std::move(numbers)};
  return {std::move(name), std::move(texts)};
}

template <class Names>
FileTable csv_table(const std::string& path, const Names& names) {
  const std::string text = read_text(path);
  const std::vector<Row> rows = rows_of(text, path);
  if (rows.empty()) throw FormatError(path, 0, "a heading of column names");
  if (rows.front().size() > kMostTableColumns)
    throw FormatError(path, 0, "at most " + std::to_string(kMostTableColumns) + " columns");
  FileTable table;
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    if (rows.front()[column].empty()) continue;
    std::string memory;
    const Renamed as = renamed(rows.front()[column], names, memory);
    const auto taken = std::any_of(table.columns.begin(), table.columns.end(),
                                   [&](const FileColumn& each) { return each.name == as.to; });
    if (taken) continue;
    Texts values;
    for (std::size_t i = 1; i < rows.size(); ++i)
      values.push_back(column < rows[i].size() ? rows[i][column] : std::string());
    table.columns.push_back(typed(std::string(as.to), std::move(values), as.factor));
  }
  return table;
}

FileColumn* column_of(FileTable& table, std::string_view name) {
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const FileColumn& each) { return each.name == name; });
  return found == table.columns.end() ? nullptr : &*found;
}

double number_at(const FileColumn& column, std::size_t row) {
  if (const auto* whole = std::get_if<Integers>(&column.values)) return static_cast<double>((*whole)[row]);
  if (const auto* numbers = std::get_if<Numbers>(&column.values)) return (*numbers)[row];
  return kNone;
}

/// Its own share of all, and the mean of a call.
FileTable aicore_types(const std::string& path) {
  FileTable table = csv_table(path, kAicoreTypes);
  std::erase_if(table.columns, [](const FileColumn& each) { return each.name == "percent"; });
  const FileColumn* total = column_of(table, "total_s");
  const FileColumn* count = column_of(table, "count");
  if (total == nullptr || count == nullptr) throw FormatError(path, 0, "columns of times and frequencies");
  double all = 0;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double value = number_at(*total, i);
    all += std::isfinite(value) ? value : 0;
  }
  Numbers shares;
  Numbers means;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double value = number_at(*total, i);
    const double calls = number_at(*count, i);
    shares.push_back(all > 0 ? value / all : kNone);
    means.push_back(calls > 0 ? value / calls : kNone);
  }
  table.columns.push_back({"mean_s", std::move(means)});
  table.columns.push_back({"total_share", std::move(shares)});
  return table;
}

/// With what the graph's file says of each operator.
FileTable aicore_details(const RankFolder& folder) {
  FileTable table = csv_table(folder.path(FileKind::aicore_details), kAicoreDetails);
  FileColumn* operators = column_of(table, "operator");
  const std::string framework = folder.path(FileKind::framework);
  if (operators == nullptr || framework.empty() || !std::holds_alternative<Texts>(operators->values))
    return table;
  const std::vector<Row> rows = rows_of(read_text(framework), framework);
  if (rows.empty()) return table;
  const Heading heading(rows.front());
  std::unordered_map<std::string_view, const Row*> by_name;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string_view full = heading.value(rows[i], "full_op_name");
    by_name.emplace(full.empty() ? heading.value(rows[i], "full_kernel_name") : full, &rows[i]);
  }
  for (const auto& [from, to] : {std::pair("op_type", "type"), std::pair("subgraph", "subgraph"),
                                 std::pair("stream_id", "stream"), std::pair("op_info", "shapes")}) {
    if (heading.place(from) < 0) continue;
    Texts values;
    for (const std::string& name : std::get<Texts>(column_of(table, "operator")->values)) {
      const auto found = by_name.find(name);
      values.emplace_back(found == by_name.end() ? std::string_view() : heading.value(*found->second, from));
    }
    table.columns.push_back({to, std::move(values)});
  }
  return table;
}

/// The numbers of an object, one row each.
FileTable json_figures(const std::string& path) {
  const JsonDocument document(read_text(path), path);
  simdjson::dom::object object;
  if (document.root().get(object) != simdjson::SUCCESS) throw FormatError(path, 0, "an object of figures");
  Texts names;
  Numbers values;
  for (const simdjson::dom::key_value_pair each : object) {
    const std::optional<double> value = number_of(each.value);
    if (!value) continue;
    names.emplace_back(each.key);
    values.push_back(*value);
  }
  return {{{"figure", std::move(names)}, {"value", std::move(values)}}, {}};
}

/// Where memory stood at each operator of each graph.
FileTable memory_curve(const RankFolder& folder) {
  const std::string path = folder.path(FileKind::memory_details);
  const JsonDocument document(read_text(path), path);
  simdjson::dom::object graphs;
  if (document.root().get(graphs) != simdjson::SUCCESS) throw FormatError(path, 0, "an object of graphs");
  Texts graph;
  Integers place;
  Numbers memory;
  for (const simdjson::dom::key_value_pair each : graphs) {
    const auto lines = array_of(each.value, "lines");
    if (!lines) continue;
    std::int64_t at = 0;
    for (const Json value : *lines) {
      graph.emplace_back(each.key);
      place.push_back(at++);
      memory.push_back(number_of(value).value_or(kNone));
    }
  }
  return {{{"graph", std::move(graph)}, {"place", std::move(place)}, {"memory", std::move(memory)}}, {}};
}

std::string text_of_value(Json value) {
  if (std::optional<std::string> text = text_of(value)) return *text;
  return simdjson::minify(value);
}

/// The tensors that were alive at the peak of each graph; columns are the members that the first one has.
FileTable memory_breakdown(const RankFolder& folder) {
  const std::string path = folder.path(FileKind::memory_details);
  const JsonDocument document(read_text(path), path);
  simdjson::dom::object graphs;
  if (document.root().get(graphs) != simdjson::SUCCESS) throw FormatError(path, 0, "an object of graphs");
  std::vector<std::string> names;
  std::vector<Texts> values;
  Texts graph;
  Integers place;
  const auto add = [&](std::string_view of, std::int64_t at, Json tensor) {
    simdjson::dom::object members;
    if (tensor.get(members) != simdjson::SUCCESS) return;
    if (names.empty()) {
      for (const simdjson::dom::key_value_pair each : members) {
        if (names.size() < kMostTableColumns && each.key != "graph" && each.key != "place")
          names.emplace_back(each.key);
      }
      values.resize(names.size());
    }
    graph.emplace_back(of);
    place.push_back(at);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::optional<Json> found = member(tensor, names[i]);
      values[i].push_back(found ? text_of_value(*found) : std::string());
    }
  };
  for (const simdjson::dom::key_value_pair each : graphs) {
    const auto breakdowns = array_of(each.value, "breakdowns");
    if (!breakdowns) continue;
    std::int64_t at = 0;
    for (const Json list : *breakdowns) {
      simdjson::dom::array tensors;
      if (list.get(tensors) == simdjson::SUCCESS) {
        for (const Json tensor : tensors) add(each.key, at, tensor);
      } else {
        add(each.key, at, list);
      }
      ++at;
    }
  }
  FileTable table{{{"graph", std::move(graph)}, {"place", std::move(place)}}, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_said = std::any_of(table.columns.begin(), table.columns.end(),
                                     [&](const FileColumn& column) { return column.name == names[i]; });
    if (!is_said) table.columns.push_back(typed(names[i], std::move(values[i]), 1));
  }
  return table;
}

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
  const std::string ascend = folder.path(FileKind::getnext_ascend);
  const std::string path = ascend.empty() ? folder.path(FileKind::getnext_gpu) : ascend;
  const GetNextFile file = read_getnext(
      read_text(path), ascend.empty() ? DeviceTicks::nanoseconds : DeviceTicks::microseconds, path);
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

struct NamedTable {
  std::string_view name;
  FileKind kind;
  FileTable (*read)(const RankFolder&);
};

template <FileKind kKind>
FileTable as_csv(const RankFolder& folder) {
  return csv_table(folder.path(kKind), std::array<Renamed, 0>{});
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
    NamedTable{"aicore_types", FileKind::aicore_types,
               [](const RankFolder& folder) { return aicore_types(folder.path(FileKind::aicore_types)); }},
    NamedTable{"aicore_operators", FileKind::aicore_details, aicore_details},
    NamedTable{"aicpu_operators", FileKind::aicpu,
               [](const RankFolder& folder) { return csv_table(folder.path(FileKind::aicpu), kAicpu); }},
    NamedTable{"gpu_types", FileKind::gpu_types, as_csv<FileKind::gpu_types>},
    NamedTable{"gpu_operators", FileKind::gpu_details, as_csv<FileKind::gpu_details>},
    NamedTable{"gpu_activity", FileKind::gpu_activity, as_csv<FileKind::gpu_activity>},
    NamedTable{"cpu_types", FileKind::cpu_types, as_csv<FileKind::cpu_types>},
    NamedTable{"cpu_operators", FileKind::cpu_details, as_csv<FileKind::cpu_details>},
    NamedTable{"memory", FileKind::memory_summary, as_figures<FileKind::memory_summary>},
    NamedTable{"memory_curve", FileKind::memory_details, memory_curve},
    NamedTable{"memory_breakdown", FileKind::memory_details, memory_breakdown},
    NamedTable{"flops", FileKind::flops_summary, as_figures<FileKind::flops_summary>},
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
