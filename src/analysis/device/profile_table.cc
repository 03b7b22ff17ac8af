#include "headrace/analysis/device/profile_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "analysis/device/communication_tables.h"
#include "analysis/device/csv_columns.h"
#include "analysis/device/database_tables.h"
#include "analysis/device/order.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/byte_source.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/csv_reader.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using trace::ascend::ProfileFolder;

constexpr std::string_view kCsv = ".csv";

std::string csv_path(const ProfileFolder& profile, const std::string& name) {
  return (fs::path(profile.output) / (name + std::string(kCsv))).string();
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Names from a user must not lead to other folders.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find_first_of("/\\") == std::string::npos && name.front() != '.';
}

/// Some CSV files as one table: the columns of all of them, in the order in which they came up.
class CsvTable {
 public:
  explicit CsvTable(std::string file) : file_(std::move(file)) {}

  void add(const std::string& path, std::int64_t rank) {
    trace::FileBytes bytes(path);
    trace::CsvReader reader(bytes, path);
    std::vector<std::string> fields;
    if (!reader.next(fields)) throw FormatError(path, 0, "a line with the names of columns");
    const std::vector<std::size_t> places = places_of(fields);
    std::vector<std::string_view> row;
    while (reader.next(fields)) {
      row.assign(columns_.size(), {});
      for (std::size_t i = 0; i < std::min(places.size(), fields.size()); ++i) row[places[i]] = fields[i];
      for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].fields.push_back(row[i]);
      ranks_.push_back(rank);
    }
    if (reader.cut()) notes_.insert(path + " ends inside a quoted field");
  }

  Table take(bool with_rank) {
    Table table;
    if (with_rank) table.add("rank", std::move(ranks_));
    for (auto& [header, fields] : columns_)
      table.add(header.name, values_of(std::exchange(fields, {}), header.unit));
    table.notes.assign(notes_.begin(), notes_.end());
    return table;
  }

 private:
  struct Column {
    CsvHeader header;
    Texts fields;
  };

  std::vector<std::size_t> places_of(const std::vector<std::string>& headers) {
    std::vector<std::size_t> places;
    std::map<std::string, int> times;
    for (const std::string& text : headers) {
      CsvHeader header = parse_header(text, file_);
      const int time = ++times[header.name];
      if (time > 1) header.name += "_" + std::to_string(time);
      const auto known = std::find_if(columns_.begin(), columns_.end(), [&](const Column& column) {
        return column.header.name == header.name;
      });
      places.push_back(static_cast<std::size_t>(known - columns_.begin()));
      if (known != columns_.end()) continue;
      Texts& fields = columns_.emplace_back(Column{std::move(header), {}}).fields;
      for (std::size_t row = 0; row < ranks_.size(); ++row)
        fields.push_back({});  // of files without this column
    }
    return places;
  }

  std::string file_;
  std::vector<Column> columns_;
  Integers ranks_;
  std::set<std::string> notes_;
};

std::optional<Table> csv_tables(std::span<const ProfileFolder> profiles, const std::string& name) {
  CsvTable all(name);
  bool any = false;
  for (const ProfileFolder& profile : profiles) {
    if (!is_file(csv_path(profile, name))) continue;
    all.add(csv_path(profile, name), profile.rank.value_or(trace::kAbsent));
    any = true;
  }
  if (!any) return std::nullopt;
  return all.take(true);
}

void note_missing(std::span<const ProfileFolder> profiles, const std::string& name, Table& table) {
  for (const ProfileFolder& profile : profiles) {
    if (!is_file(csv_path(profile, name))) table.notes.push_back(profile.output + " has no " + name + ".csv");
  }
}

}  // namespace

std::vector<std::string> profile_tables(std::span<const ProfileFolder> profiles) {
  constexpr std::size_t kMaxFiles = 10'000;
  std::set<std::string> names;
  for (const ProfileFolder& profile : profiles) {
    std::error_code error;
    std::size_t left = kMaxFiles;
    for (fs::directory_iterator at(profile.output, error), end; !error && at != end && left > 0;
         at.increment(error), --left) {
      const std::string file = at->path().filename().string();
      if (file.ends_with(kCsv) && is_file(at->path().string()))
        names.insert(file.substr(0, file.size() - kCsv.size()));
    }
    for (const std::string& name : communication_tables(profile)) names.insert(name);
    for (const std::string& name : database_tables(profile)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Table profile_table(std::span<const ProfileFolder> profiles, const std::string& name) {
  if (is_plain_name(name)) {
    if (std::optional<Table> table = csv_tables(profiles, name)) {
      note_missing(profiles, name, *table);
      return std::move(*table);
    }
    if (std::optional<Table> table = communication_table(profiles, name)) return std::move(*table);
    if (std::optional<Table> table = database_table(profiles, name)) return std::move(*table);
  }
  const std::string there = joined(profile_tables(profiles), ", ");
  throw UsageError("the profile has no table '" + name + "'; " +
                   (there.empty() ? std::string("it has none") : "there are: " + there));
}

Table csv_table(const std::string& path) {
  CsvTable all(fs::path(path).stem().string());
  all.add(path, trace::kAbsent);
  return all.take(false);
}

}  // namespace headrace::analysis::device
