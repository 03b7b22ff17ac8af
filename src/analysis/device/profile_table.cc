#include "headrace/analysis/device/profile_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/device/order.h"
#include "analysis/device/profiler_tables.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/table.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/byte_source.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/csv_reader.h"
#include "trace/database.h"
#include "trace/fixed_point.h"

namespace headrace::analysis::device {
namespace {

/// How a column's fields become values.
enum class CsvUnit : std::uint8_t {
  none,         ///< as they are
  stamp_us,     ///< a moment in microseconds: integer nanoseconds
  duration_us,  ///< seconds
  duration_ms,  ///< seconds
};

/// A parsed header.
struct CsvHeader {
  std::string name;  ///< "start_time_ns" for "Start Time(us)"
  CsvUnit unit = CsvUnit::none;
};

struct UnitMark {
  std::string_view mark;  ///< at the header's end
  std::string_view ending;
  CsvUnit unit;
};
constexpr std::array<UnitMark, 9> kUnits = {{
    {"(us)", "_s", CsvUnit::duration_us},
    {"(ms)", "_s", CsvUnit::duration_ms},
    {"(%)", "_pct", CsvUnit::none},
    {"(MB)", "_mb", CsvUnit::none},
    {"(KB)", "_kb", CsvUnit::none},
    {"(GB/s)", "_gbps", CsvUnit::none},
    {"(MB/s)", "_mb_per_s", CsvUnit::none},
    {"(MHz)", "_mhz", CsvUnit::none},
    {"(Byte)", "_bytes", CsvUnit::none},
}};

/// Moments, not durations, among the columns in microseconds.
constexpr std::array<std::string_view, 8> kStamps = {"start_time",   "timestamp",           "allocation_time",
                                                     "release_time", "active_release_time", "start_timestamp",
                                                     "end_time",     "task_start_time"};

/// Tables whose columns are microseconds, but for these.
constexpr std::array<std::string_view, 2> kMicroseconds = {"step_trace_time", "cluster_step_trace_time"};
constexpr std::array<std::string_view, 7> kNoTimes = {"step",     "type",     "index",   "device_id",
                                                      "dp_index", "pp_index", "tp_index"};

template <class List>
bool is_in(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string plain_name(std::string_view header) {
  std::string name;
  for (const char c : header) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      name += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (name.ends_with('_')) name.pop_back();
  return name.empty() ? "column" : name;
}

bool parse_integer(std::string_view field, std::int64_t& value) noexcept {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc() && end == field.data() + field.size();
}

/// `file`: the table's name. Those of steps have microseconds without saying so.
CsvHeader parse_header(std::string_view header, std::string_view file) {
  while (!header.empty() && (header.back() == ' ' || header.back() == '\t')) header.remove_suffix(1);
  for (const UnitMark& unit : kUnits) {
    if (!header.ends_with(unit.mark)) continue;
    std::string name = plain_name(header.substr(0, header.size() - unit.mark.size()));
    if (unit.unit == CsvUnit::duration_us && is_in(kStamps, name)) return {name + "_ns", CsvUnit::stamp_us};
    return {name.append(unit.ending), unit.unit};
  }
  std::string name = plain_name(header);
  if (is_in(kMicroseconds, file) && !is_in(kNoTimes, name)) return {name + "_s", CsvUnit::duration_us};
  return {std::move(name), CsvUnit::none};
}

/// The fields of a column as values. Without a unit they are integers if all of them are and none is absent,
/// numbers if all that are there are, else texts.
std::variant<Integers, Numbers, Texts> values_of(const Texts& fields, CsvUnit unit) {
  bool any = false, any_absent = false, all_integers = true, all_numbers = true;
  Integers integers;
  Numbers numbers;
  Texts texts;
  for (std::size_t row = 0; row < fields.size(); ++row) {
    const std::string_view field = fields[row];
    const bool absent = trace::is_absent(field);
    std::int64_t integer = trace::kAbsent;
    double number = kNoFigure;
    if (unit == CsvUnit::stamp_us) {
      if (absent || trace::to_nanoseconds(field, integer) != trace::NumberError::none)
        integer = trace::kAbsent;
    } else if (!absent) {
      any = true;
      all_integers = all_integers && parse_integer(field, integer);
      if (trace::to_number(field, number) != trace::NumberError::none)
        number = kNoFigure, all_numbers = false;
    }
    any_absent = any_absent || absent;
    integers.push_back(integer);
    numbers.push_back(unit == CsvUnit::duration_us   ? number / 1e6
                      : unit == CsvUnit::duration_ms ? number / 1e3
                                                     : number);
  }
  if (unit == CsvUnit::stamp_us) return integers;
  if (unit == CsvUnit::none && all_numbers && any && all_integers && !any_absent) return integers;
  if (unit != CsvUnit::none || all_numbers) return numbers;
  for (std::size_t row = 0; row < fields.size(); ++row)
    texts.push_back(trace::is_absent(fields[row]) ? std::string_view() : fields[row]);
  return texts;
}

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
    for (auto& [header, fields] : columns_) {
      table.add(header.name, values_of(fields, header.unit));
      fields = {};
    }
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

namespace {

using namespace trace::ascend;

constexpr const char* kTimes = "communication";
constexpr const char* kBandwidths = "communication_bandwidth";
constexpr const char* kMatrix = "communication_matrix";

bool has_file(const ProfileFolder& profile, const char* name) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::path(profile.output) / name, error);
}

double ratio(double part, double other) {
  const double whole = part + other;
  return whole > 0 ? part / whole : kNoFigure;
}

Table times_table(const Communication& communication) {
  Rows<CommunicationColumns> rows;
  for (const CommunicationTime& time : communication.times)
    rows.add(operation_of(time.of), time.start_ns, time.elapse_s, time.transit_s, time.wait_s,
             time.synchronisation_s, time.idle_s, ratio(time.wait_s, time.transit_s),
             ratio(time.synchronisation_s, time.transit_s));
  return rows.take();
}

Table bandwidths_table(const Communication& communication) {
  Rows<CommunicationBandwidthColumns> rows;
  for (const CommunicationBandwidth& each : communication.bandwidths)
    rows.add(operation_of(each.of), each.transport, each.size_mb, each.transit_s, each.bandwidth_gbps,
             each.large_packet_ratio, each.packet_mb, each.packets, each.packets_s);
  return rows.take();
}

Table links_table(const Communication& communication) {
  Rows<CommunicationMatrixColumns> rows;
  for (const CommunicationLink& link : communication.links)
    rows.add(operation_of(link.of), link.source, link.target, link.transport, link.size_mb, link.transit_s,
             link.bandwidth_gbps, link.slowest);
  return rows.take();
}

}  // namespace

std::vector<std::string> communication_tables(const ProfileFolder& profile) {
  std::vector<std::string> names;
  bool times = has_file(profile, "communication.json");
  bool matrix = has_file(profile, "communication_matrix.json");
  if (!profile.analysis_database.empty() && !times && !matrix) {
    try {
      const trace::Database database(profile.analysis_database);
      times = database.has_table("CommAnalyzerTime");
      matrix = database.has_table("CommAnalyzerMatrix");
    } catch (const FormatError&) {
      // Asking for one of its tables says what is wrong with it.
    }
  }
  if (times) names.insert(names.end(), {kTimes, kBandwidths});
  if (matrix) names.emplace_back(kMatrix);
  return names;
}

std::optional<Table> communication_table(std::span<const ProfileFolder> profiles, const std::string& name) {
  if (name != kTimes && name != kBandwidths && name != kMatrix) return std::nullopt;
  const Communication all = read_communication(profiles);
  if (all.profiles == 0 && all.failures.empty()) return std::nullopt;
  Table table = name == kTimes        ? times_table(all)
                : name == kBandwidths ? bandwidths_table(all)
                                      : links_table(all);
  if (table.rows() == 0 && !all.failures.empty()) throw FormatError(all.failures.front());
  for (const FormatError& failure : all.failures) table.notes.emplace_back(failure.what());
  return table;
}

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
