#include "csv_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

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

Renamed renamed(std::string_view name, std::span<const Renamed> names, std::string& memory) {
  for (const Renamed& each : names) {
    if (each.from == name) return each;
  }
  return by_unit(name, memory);
}

}  // namespace

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

FileTable csv_table(const std::string& path, std::span<const Renamed> names) {
  const std::string text = read_text(path);
  const std::vector<Row> rows = rows_of(text, path);
  if (rows.empty()) throw FormatError(path, 0, "a heading of column names");
  if (rows.front().size() > kMaxTableColumns)
    throw FormatError(path, 0, "at most " + std::to_string(kMaxTableColumns) + " columns");
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

}  // namespace headrace::loader_files
