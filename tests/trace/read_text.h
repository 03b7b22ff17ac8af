#pragma once

#include <string_view>

#include "headrace/trace/reader.h"

namespace headrace::trace {

inline TraceFile read_text(std::string_view text, const ReadOptions& options = {}) {
  MemoryBytes source(text);
  return read_source(source, "test.json", options);
}

}  // namespace headrace::trace
