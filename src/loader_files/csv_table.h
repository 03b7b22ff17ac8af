// A file of comma-separated values as a table: units in names, numbers as numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/loader_files/file_table.h"
#include "units.h"

namespace headrace::loader_files {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Tables of operators have ten or twenty.
inline constexpr std::size_t kMaxTableColumns = 1024;

/// A column of a file under another name, in other units.
struct Renamed {
  std::string_view from;
  std::string_view to;
  double factor = 1;
};

/// The table of the file. Columns without a name, and those whose name is taken, are left out; "total_time(us)"
/// becomes total_time_s. FormatError for a file without a heading or with over kMaxTableColumns.
FileTable csv_table(const std::string& path, std::span<const Renamed> names = {});

/// Whole numbers, numbers or texts, whichever all values are; with a factor other than 1 never whole numbers.
/// Missing numbers, and "-", are NaN.
FileColumn typed(std::string name, Texts texts, double factor);

/// Null where there is none.
FileColumn* column_of(FileTable& table, std::string_view name);
/// NaN where it is a text.
double number_at(const FileColumn& column, std::size_t row);

}  // namespace headrace::loader_files
