#include "headrace/transport/device.h"

#include <limits>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

/// The largest sum of sizes that is not a mistake: beyond it offsets could wrap around.
constexpr std::size_t kLargestSum = std::numeric_limits<std::ptrdiff_t>::max() / 2;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::size_t bytes_needed(std::span<const HostBytes> arrays) {
  std::size_t end = 0;
  for (const HostBytes array : arrays) {
    if (array.size() > kLargestSum - aligned(end))
      throw UsageError("the arrays of a batch are larger than memory can be");
    end = aligned(end) + array.size();
  }
  return end;
}

std::vector<std::size_t> lay_out(std::span<const HostBytes> arrays, std::size_t capacity) {
  const std::size_t needed = bytes_needed(arrays);
  if (needed > capacity) {
    throw UsageError("a batch of " + std::to_string(needed) + " bytes does not fit into a block of " +
                     std::to_string(capacity) + ": acquire bytes_needed(arrays)");
  }
  std::vector<std::size_t> offsets;
  offsets.reserve(arrays.size());
  std::size_t end = 0;
  for (const HostBytes array : arrays) {
    offsets.push_back(aligned(end));
    end = offsets.back() + array.size();
  }
  return offsets;
}

void Device::expect_within(const Block& block, std::size_t offset, std::size_t bytes) const {
  if (!block.is_of(*ring_)) throw UsageError(name_ + ": the block was not acquired from this device");
  if (offset > block.capacity() || bytes > block.capacity() - offset)
    throw UsageError(name_ + ": these bytes are not within the block");
}

std::vector<std::size_t> Device::lay_out_in(const Block& block, std::span<const HostBytes> arrays) const {
  expect_within(block, 0, 0);
  return lay_out(arrays, block.capacity());
}

}  // namespace headrace::transport
