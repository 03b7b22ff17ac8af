#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace headrace::pipeline {

inline std::vector<int> numbers(int count) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), 0);
  return made;
}

}  // namespace headrace::pipeline
