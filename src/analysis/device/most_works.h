// How long tables with a row per piece of device work become.
#pragma once

#include <cstddef>
#include <span>

#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Most rows that a table with one for each piece of device work may have. Columns that are made this long
/// ahead are not copied while they grow; what is not written to costs nothing.
inline std::size_t most_works(std::span<const trace::Trace> traces) {
  std::size_t works = 0;
  for (const trace::Trace& trace : traces) works += trace.device_rows.size();
  return works;
}

}  // namespace headrace::analysis::device
