// Columns as an Arrow C stream of one batch: what pandas, polars and DuckDB take.
#pragma once

#include <memory>

#include "column_set.h"

/// As the Arrow C data interface lays it out; the names are the interface's.
struct ArrowArrayStream;

namespace headrace::python {

/// A stream that shares the set's memory; whoever gets it calls its `release` and frees it with
/// `delete_arrow_stream`.
ArrowArrayStream* make_arrow_stream(std::shared_ptr<const ColumnSet> columns);

/// Releases it where nobody has, and frees it.
void delete_arrow_stream(ArrowArrayStream* stream) noexcept;

}  // namespace headrace::python
