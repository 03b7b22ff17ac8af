// The work that all contenders do: numbers, one added to each, batches of 32, the sum of everything.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace headrace::bench {

inline constexpr std::int64_t kItems = 320'000;
inline constexpr std::int64_t kBatch = 32;

inline void expect_sum(std::int64_t sum) {
  if (sum == kItems * (kItems + 1) / 2) return;
  std::fprintf(stderr, "items were lost or doubled\n");
  std::exit(1);
}

}  // namespace headrace::bench
