#include "headrace/transport/host_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "headrace/metrics/clock.h"
#include "headrace/profile/errors.h"
#include "headrace/transport/host_memory.h"

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

}  // namespace headrace::transport
