// The batches that are copied: 64 MiB of numbers that the receiver can check.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "headrace/transport/host_device.h"

namespace headrace::benchmarks {

inline constexpr std::size_t kBatchBytes = std::size_t{64} << 20;
inline constexpr std::size_t kWords = kBatchBytes / sizeof(std::uint64_t);

/// Blocks of the same memory as a device's, for the copies that nobody wraps.
class Blocks {
 public:
  explicit Blocks(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) blocks_.push_back(memory_.allocate(kBatchBytes));
  }
  ~Blocks() {
    for (std::byte* block : blocks_) memory_.release(block, kBatchBytes);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  std::byte* operator[](std::size_t i) const { return blocks_[i % blocks_.size()]; }

 private:
  transport::HostMemory memory_;
  std::vector<std::byte*> blocks_;
};

/// Marks the batch with its number, at both ends and in the middle.
inline void mark(std::byte* batch, std::uint64_t number) {
  auto* const words = reinterpret_cast<std::uint64_t*>(batch);
  for (const std::size_t at : {std::size_t{0}, kWords / 2, kWords - 1}) words[at] = number * 3 + at;
}

/// Ends the program where it is not the batch of that number.
inline void check(const std::byte* batch, std::uint64_t number) {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(batch);
  for (const std::size_t at : {std::size_t{0}, kWords / 2, kWords - 1}) {
    if (words[at] != number * 3 + at) {
      std::fprintf(stderr, "batch %llu did not arrive\n", static_cast<unsigned long long>(number));
      std::abort();
    }
  }
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace headrace::benchmarks
