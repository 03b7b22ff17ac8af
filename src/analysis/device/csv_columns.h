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

/// One column of a table that is read twice: `see` every field first, then `add` every field.
class CsvColumn {
 public:
  explicit CsvColumn(CsvHeader header) : header_(std::move(header)) {}

  const CsvHeader& header() const noexcept { return header_; }
  void see(std::string_view field) noexcept;
  void add(std::string_view field);
  void put_into(Table& table);

 private:
  enum class Type : std::uint8_t { integers, numbers, texts };
  Type type() const noexcept;

  CsvHeader header_;
  bool any_ = false;
  bool any_absent_ = false;
  bool all_integers_ = true;
  bool all_numbers_ = true;
  Integers integers_;
  Numbers numbers_;
  Texts texts_;
};

}  // namespace headrace::analysis::device
