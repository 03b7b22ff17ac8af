#include "headrace/transport/host_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

std::optional<double> checked(std::optional<double> bandwidth) {
  if (bandwidth && !(*bandwidth > 0 && std::isfinite(*bandwidth)))
    throw UsageError("a bandwidth is a positive number of bytes per second");
  return bandwidth;
}

/// Bounded to a year: what comes out of a tiny bandwidth still fits the clock.
std::chrono::nanoseconds time_on_the_bus(std::int64_t bytes, double bandwidth) {
  constexpr double kYear = 3.15e16;
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min(kYear, static_cast<double>(bytes) / bandwidth * 1e9)));
}

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void no_memory(std::size_t bytes) {
  throw DeviceError("cpu: no memory for a buffer of " + std::to_string(bytes) +
                    " bytes: use fewer or smaller buffers");
}

std::size_t mapped_bytes(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

/// A mapping that begins on a huge page: mapped with one too many, the ends given back.
std::byte* map_aligned(std::size_t bytes) {
  const std::size_t length = bytes + kHugePage;
  void* raw = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(raw);
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(first) % kHugePage) % kHugePage;
  if (head > 0) munmap(first, head);
  if (kHugePage - head > 0) munmap(first + head + bytes, kHugePage - head);
  return first + head;
}

/// False if memory is short; the other way would be a signal at some later store.
bool fault_in(std::byte* data, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  int failed = 0;
  do {
    failed = madvise(data, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  } while (failed == EINTR || failed == EAGAIN);
  if (failed != EINVAL) return failed == 0;  // else a kernel before 5.14, which does not know the word
#endif
  std::memset(data, 0, bytes);
  return true;
}

}  // namespace

HostDevice::HostDevice(const DeviceOptions& options)
    : Device("cpu", BlockRing::make(std::make_unique<HostMemory>(), options.buffers, options.buffer_bytes,
                                    options.max_buffer_bytes)),
      bandwidth_(checked(options.bandwidth)) {}

Copied HostDevice::copy(std::span<const HostBytes> arrays, Block& into) {
  Copied copied;
  copied.offsets = lay_out_in(into, arrays);
  std::unique_lock<std::mutex> bus(bus_, std::defer_lock);
  if (bandwidth_) bus.lock();
  const auto began = BlockRing::Clock::now();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    copied.bytes += static_cast<std::int64_t>(arrays[i].size());
    if (!arrays[i].empty()) std::memcpy(into.data() + copied.offsets[i], arrays[i].data(), arrays[i].size());
  }
  if (bandwidth_) ring().sleep_until(began + time_on_the_bus(copied.bytes, *bandwidth_));
  const std::chrono::nanoseconds lasted = BlockRing::Clock::now() - began;
  copied.completion = Completion(lasted.count());
  return copied;
}

void HostDevice::read_back(std::span<std::byte> to, const Block& from, std::size_t offset) {
  expect_within(from, offset, to.size());
  if (!to.empty()) std::memcpy(to.data(), from.data() + offset, to.size());
}

std::byte* HostMemory::allocate(std::size_t bytes) {
  if (bytes < kHugePage) {
    auto* data = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow));
    if (data == nullptr) no_memory(bytes);
    std::memset(data, 0, bytes);
    return data;
  }
  if (bytes > std::numeric_limits<std::size_t>::max() / 4) no_memory(bytes);
  const std::size_t length = mapped_bytes(bytes);
  std::byte* data = map_aligned(length);
  if (data == nullptr) no_memory(bytes);
  madvise(data, length, MADV_HUGEPAGE);  // a wish: without it the copies are some percent slower
  if (!fault_in(data, length)) {
    munmap(data, length);
    no_memory(bytes);
  }
  return data;
}

void HostMemory::release(std::byte* data, std::size_t bytes) noexcept {
  if (bytes < kHugePage) {
    ::operator delete(data, std::align_val_t{kAlignment});
  } else {
    munmap(data, mapped_bytes(bytes));
  }
}

}  // namespace headrace::transport
