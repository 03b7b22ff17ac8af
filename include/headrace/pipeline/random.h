// The random numbers that decide an order: the same on every machine and in every version.
#pragma once

#include <cstdint>

namespace headrace::pipeline {

/// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// A number below `n`, which is 1 to 2^32. Uniform but for n / 2^32.
  std::uint64_t below(std::uint64_t n) noexcept { return (next() >> 32) * n >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace headrace::pipeline
