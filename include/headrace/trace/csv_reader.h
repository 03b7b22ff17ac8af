// Comma-separated values, as profilers write them: quoted fields, also over several lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/trace/byte_source.h"

namespace headrace::trace {

/// Reads one record after the other; memory is one window and one record. Used by one thread at a time.
///
/// A quote in a quoted field is doubled (RFC 4180). Blanks and TABs around a field are dropped, as is a byte
/// order mark. A record may have fewer or more fields than the header; empty lines are none.
class CsvReader {
 public:
  /// Longer fields and more columns are damage: FormatError.
  static constexpr std::size_t kLongestField = std::size_t{4} << 20;
  static constexpr std::size_t kMaxFields = 4096;

  /// `name`: what errors call the file. `source` must outlive this.
  CsvReader(ByteSource& source, std::string name);

  /// Puts the next record into `fields`; false behind the last. A quoted field that the file's end cuts off
  /// is given as it is, and `cut()` is true then.
  bool next(std::vector<std::string>& fields);

  bool cut() const noexcept { return cut_; }

 private:
  static constexpr int kEnd = -1;
  int take();
  int peek();
  void add(std::string& field, char c) const;

  ByteSource& source_;
  std::string name_;
  std::vector<char> window_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
  bool cut_ = false;
};

/// True for what stands in place of a value that there is not: nothing, "N/A", "null", "nan".
bool is_absent(std::string_view field) noexcept;

}  // namespace headrace::trace
