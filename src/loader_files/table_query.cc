// Search, groups and order of a table.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>

#include "csv_table.h"
#include "headrace/loader_files/file_table.h"
#include "headrace/profile/errors.h"

namespace headrace::loader_files {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The rows at `places`, in their order.
FileTable taken(const FileTable& table, const std::vector<std::size_t>& places) {
  FileTable made;
  made.notes = table.notes;
  for (const FileColumn& column : table.columns) {
    std::visit(
        [&](const auto& values) {
          std::decay_t<decltype(values)> kept;
          for (const std::size_t at : places) kept.push_back(values[at]);
          made.columns.push_back({column.name, std::move(kept)});
        },
        column.values);
  }
  return made;
}

const FileColumn& wanted_column(const FileTable& table, const std::string& name) {
  std::string names;
  for (const FileColumn& each : table.columns) {
    if (each.name == name) return each;
    names += (names.empty() ? "" : ", ") + each.name;
  }
  throw UsageError("no column " + name + "; there are: " + names);
}

/// Times and counts that add up.
bool adds_up(const std::string& name) {
  return name == "count" || name == "total_s" || name == "total_share" || name == "wait_s" ||
         name == "push_s" || name == "dispatch_s" || name == "execution_s" ||
         name.ends_with("total_time_s") || name.ends_with("occurrences");
}

FileTable grouped(const FileTable& table, const std::string& by) {
  const FileColumn& key = wanted_column(table, by);
  std::unordered_map<std::string, std::size_t> places;
  Texts keys;
  std::vector<std::size_t> group_of;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    std::string text;
    if (const auto* texts = std::get_if<Texts>(&key.values)) {
      text = (*texts)[i];
    } else {
      const double value = number_at(key, i);
      text = std::floor(value) == value && std::abs(value) < 1e15
                 ? std::to_string(static_cast<std::int64_t>(value))
                 : std::to_string(value);
    }
    const auto [found, is_new] = places.emplace(text, keys.size());
    if (is_new) keys.push_back(text);
    group_of.push_back(found->second);
  }
  FileTable made;
  made.notes = table.notes;
  Integers rows(keys.size(), 0);
  for (const std::size_t group : group_of) ++rows[group];
  made.columns.push_back({by, std::move(keys)});
  made.columns.push_back({"rows", std::move(rows)});
  for (const FileColumn& column : table.columns) {
    if (column.name == by || !adds_up(column.name) || std::holds_alternative<Texts>(column.values)) continue;
    Numbers sums(places.size(), 0);
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const double value = number_at(column, i);
      if (std::isfinite(value)) sums[group_of[i]] += value;
    }
    made.columns.push_back({column.name, std::move(sums)});
  }
  return made;
}

}  // namespace

FileTable queried(FileTable table, const TableQuery& query) {
  if (!query.search.empty()) {
    const std::string wanted = lower(query.search);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const bool found =
          std::any_of(table.columns.begin(), table.columns.end(), [&](const FileColumn& column) {
            const auto* texts = std::get_if<Texts>(&column.values);
            return texts != nullptr && lower((*texts)[i]).find(wanted) != std::string::npos;
          });
      if (found) places.push_back(i);
    }
    table = taken(table, places);
  }
  if (!query.group_by.empty()) table = grouped(table, query.group_by);
  if (query.sort_by.empty()) return table;
  const FileColumn& by = wanted_column(table, query.sort_by);
  std::vector<std::size_t> places(table.rows());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  if (const auto* texts = std::get_if<Texts>(&by.values)) {
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return (*texts)[a] < (*texts)[b]; });
  } else {
    const auto key = [&](std::size_t row) {
      const double value = number_at(by, row);
      return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
    };
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  }
  return taken(table, places);
}

}  // namespace headrace::loader_files
