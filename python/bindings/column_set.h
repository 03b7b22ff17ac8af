// Columns of C++ memory as Python sees them: NumPy views and Arrow streams, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/trace/columns.h"

namespace headrace::python {

/// One column. `data` belongs to the owner of its ColumnSet.
struct ColumnView {
  /// As Arrow writes it: l int64, g double, I uint32, i int32, S uint16, C uint8, c int8, U large utf-8.
  std::string format;
  std::string name;
  std::size_t rows = 0;
  const void* data = nullptr;             ///< of texts: their bytes
  const std::int64_t* offsets = nullptr;  ///< of texts: rows + 1
  /// The texts, each stored once, if it holds numbers of them.
  std::shared_ptr<const ColumnView> dictionary;
  std::string_view says = {};  ///< how to read it; static memory

  bool is_text() const noexcept { return format == "U" || dictionary != nullptr; }
  std::size_t item_bytes() const noexcept;
  /// The text of a row; of text columns only.
  std::string_view text(std::size_t row) const noexcept;
};

/// Columns of one length, what keeps their memory, and remarks. Read-only, so any thread may use it.
struct ColumnSet {
  std::vector<ColumnView> columns;
  std::shared_ptr<const void> owner;
  std::vector<std::string> notes;

  std::size_t rows() const noexcept { return columns.empty() ? 0 : columns.front().rows; }
};

ColumnSet columns_of(std::shared_ptr<const analysis::Table> table);
std::shared_ptr<ColumnSet> shared(analysis::Table&& table);

/// The events of a trace; `owner` keeps `columns`.
ColumnSet columns_of(const trace::Columns& columns, std::shared_ptr<const void> owner);

/// The rows that have an argument, and its values there.
ColumnSet columns_of(const trace::Columns& columns, const trace::ArgumentColumn& argument,
                     std::shared_ptr<const void> owner);

}  // namespace headrace::python
