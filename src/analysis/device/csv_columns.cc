#include "analysis/device/csv_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "headrace/analysis/device/figures.h"
#include "headrace/trace/columns.h"
#include "headrace/trace/csv_reader.h"
#include "trace/fixed_point.h"

namespace headrace::analysis::device {
namespace {

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

}  // namespace

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

std::variant<Integers, Numbers, Texts> values_of(Texts fields, CsvUnit unit) {
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

}  // namespace headrace::analysis::device
