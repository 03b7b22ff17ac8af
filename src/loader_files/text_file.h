// What the readers of small text files share: bytes, lines of numbers, rows of comma-separated values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::loader_files {

/// A profile file of a day is far below this; what is larger is none.
inline constexpr std::uint64_t kMaxBytes = 256ULL << 20;
/// Columns of a row: a step trace has three for each collective.
inline constexpr std::size_t kMaxColumns = 1 << 16;
/// Values of a table, all rows together.
inline constexpr std::size_t kMaxValues = 1 << 24;

/// The bytes of a regular file. FormatError where it cannot be opened, is no file, or has over kMaxBytes.
std::string read_text(const std::string& path);

/// The next line of `rest` without its end, which is taken off `rest`; empty once there is none.
std::optional<std::string_view> next_line(std::string_view& rest);

/// The words between blanks.
std::vector<std::string_view> words_of(std::string_view line);

/// The whole text as a number; empty if it is none.
std::optional<std::int64_t> whole_number(std::string_view text);
std::optional<double> number(std::string_view text);

using Row = std::vector<std::string>;

/// The rows of comma-separated values; texts in double quotes may hold commas, line ends and "" for a quote.
/// Blanks around a value that is not quoted are dropped. Empty lines are left out. FormatError for a quote
/// that is never closed, for a row of over kMaxColumns and for over kMaxValues.
std::vector<Row> rows_of(std::string_view text, const std::string& path);

/// Finds a row's values by the names of their columns; rows may be shorter than the heading.
class Heading {
 public:
  explicit Heading(const Row& names);
  /// -1: no such column.
  int place(std::string_view name) const noexcept;
  /// "" where the column or the value is missing.
  std::string_view value(const Row& row, std::string_view name) const noexcept;

 private:
  std::map<std::string, int, std::less<>> places_;  ///< of the first column of each name
};

/// The whole numbers of "[1, 2, 3]"; empty for anything else.
std::optional<std::vector<std::int64_t>> list_of(std::string_view text);

}  // namespace headrace::loader_files
