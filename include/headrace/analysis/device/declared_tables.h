// The tables of device traces with their columns, for the documentation and for Python.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/analysis/rows.h"

namespace headrace::analysis::device {

struct DeclaredTable {
  /// As in Python: the method of `Trace`, and behind a "." the part of its answer. "table(x)": what the
  /// profiler wrote, of those that are read from a database or JSON. "MemorySnapshot.x": a method of that
  /// class.
  std::string_view name;
  std::vector<ColumnShape> columns;
};

/// In the order of docs/device_columns.md.
std::vector<DeclaredTable> declared_tables();

}  // namespace headrace::analysis::device
