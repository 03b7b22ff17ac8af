// The traces of one or several ranks as Python holds them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "headrace/trace/trace.h"

namespace headrace::python {

/// All traces of a load, or one of them; they share the memory. Read-only, so any thread may use it.
struct TraceSet {
  std::shared_ptr<const std::vector<trace::Trace>> all;
  std::size_t first = 0;
  std::size_t count = 0;

  std::span<const trace::Trace> traces() const noexcept {
    return std::span<const trace::Trace>(*all).subspan(first, count);
  }
};

}  // namespace headrace::python
