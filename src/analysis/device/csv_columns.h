// From the header of a profiler's CSV file to named columns with units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/analysis/table.h"

namespace headrace::analysis::device {

/// How a column's fields become values.
enum class CsvUnit : std::uint8_t {
  none,         ///< as they are
  stamp_us,     ///< a moment in microseconds: integer nanoseconds
  duration_us,  ///< seconds
  duration_ms,  ///< seconds
};

/// What a header says.
struct CsvHeader {
  std::string name;  ///< "start_time_ns" for "Start Time(us)"
  CsvUnit unit = CsvUnit::none;
};

/// `file`: the table's name. Those of steps have microseconds without saying so.
CsvHeader parse_header(std::string_view header, std::string_view file);

/// The fields of a column as values. Without a unit they are integers if all of them are and none is absent, numbers
/// if all that are there are, else texts.
std::variant<Integers, Numbers, Texts> values_of(Texts fields, CsvUnit unit);

}  // namespace headrace::analysis::device
