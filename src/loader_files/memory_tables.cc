#include "memory_tables.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "csv_table.h"
#include "headrace/profile/errors.h"
#include "json_document.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

std::string text_of_value(Json value) {
  if (std::optional<std::string> text = text_of(value)) return *text;
  return simdjson::minify(value);
}

}  // namespace

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
        if (names.size() < kMaxTableColumns && each.key != "graph" && each.key != "place")
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

}  // namespace headrace::loader_files
