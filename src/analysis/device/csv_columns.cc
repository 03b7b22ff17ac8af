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

double number_of(std::string_view field) noexcept {
  double value = 0;
  return trace::to_number(field, value) == trace::NumberError::none ? value : kNoFigure;
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

void CsvColumn::see(std::string_view field) noexcept {
  if (trace::is_absent(field)) {
    any_absent_ = true;
    return;
  }
  any_ = true;
  std::int64_t integer = 0;
  double number = 0;
  if (all_integers_) all_integers_ = parse_integer(field, integer);
  if (all_numbers_ && !all_integers_)
    all_numbers_ = trace::to_number(field, number) == trace::NumberError::none;
}

CsvColumn::Type CsvColumn::type() const noexcept {
  if (header_.unit == CsvUnit::stamp_us) return Type::integers;
  if (header_.unit != CsvUnit::none) return Type::numbers;
  if (!all_numbers_) return Type::texts;
  return any_ && all_integers_ && !any_absent_ ? Type::integers : Type::numbers;
}

void CsvColumn::add(std::string_view field) {
  const bool absent = trace::is_absent(field);
  if (type() == Type::texts) return texts_.push_back(absent ? std::string_view() : field);
  switch (header_.unit) {
    case CsvUnit::stamp_us: {
      std::int64_t ns = 0;
      const bool known = !absent && trace::to_nanoseconds(field, ns) == trace::NumberError::none;
      return integers_.push_back(known ? ns : trace::kAbsent);
    }
    case CsvUnit::duration_us:
      return numbers_.push_back(absent ? kNoFigure : number_of(field) / 1e6);
    case CsvUnit::duration_ms:
      return numbers_.push_back(absent ? kNoFigure : number_of(field) / 1e3);
    case CsvUnit::none:
      break;
  }
  if (type() == Type::numbers) return numbers_.push_back(absent ? kNoFigure : number_of(field));
  std::int64_t integer = 0;
  integers_.push_back(parse_integer(field, integer) ? integer : trace::kAbsent);
}

void CsvColumn::put_into(Table& table) {
  switch (type()) {
    case Type::integers:
      table.add(header_.name, std::move(integers_));
      break;
    case Type::numbers:
      table.add(header_.name, std::move(numbers_));
      break;
    case Type::texts:
      table.add(header_.name, std::move(texts_));
      break;
  }
}

}  // namespace headrace::analysis::device
