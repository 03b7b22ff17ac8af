#pragma once

#include <cstdint>
#include <cstdlib>

namespace headrace::analysis {

/// HEADRACE_SEED, or 0: other seeds draw other numbers.
inline std::uint64_t first_seed() {
  const char* text = std::getenv("HEADRACE_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace headrace::analysis
