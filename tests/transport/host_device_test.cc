#include "headrace/transport/host_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

using namespace std::chrono_literals;

HostBytes bytes_of(const std::vector<unsigned char>& array) { return std::as_bytes(std::span(array)); }

std::vector<unsigned char> bytes_from_length(std::size_t length) {
  std::vector<unsigned char> array(length);
  std::iota(array.begin(), array.end(), static_cast<unsigned char>(length));
  return array;
}

TEST(HostDevice, CopiesEveryArrayToAnAlignedPlace) {
  HostDevice device;
  const std::vector<unsigned char> arrays[] = {bytes_from_length(1), bytes_from_length(0),
                                               bytes_from_length(1000), bytes_from_length(64)};
  const HostBytes batch[] = {bytes_of(arrays[0]), bytes_of(arrays[1]), bytes_of(arrays[2]),
                             bytes_of(arrays[3])};
  Acquired acquired = device.acquire(bytes_needed(batch));
  const Copied copied = device.copy(batch, acquired.block);
  ASSERT_EQ(copied.offsets.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(copied.offsets[i] % kAlignment, 0U);
    EXPECT_TRUE(
        std::ranges::equal(HostBytes(acquired.block.data() + copied.offsets[i], batch[i].size()), batch[i]));
  }
  EXPECT_EQ(copied.bytes, 1065);
  EXPECT_EQ(copied.pinned_bytes + copied.pageable_bytes, 0);  // pinning means nothing here
  EXPECT_TRUE(copied.completion.done());
  copied.completion.wait();
  EXPECT_GE(copied.completion.copy_ns(), 0);
}

TEST(HostDevice, AnEmptyBatchIsABatch) {
  HostDevice device;
  Acquired acquired = device.acquire(bytes_needed({}));
  const Copied copied = device.copy({}, acquired.block);
  EXPECT_TRUE(copied.offsets.empty());
  EXPECT_EQ(copied.bytes, 0);
}

TEST(HostDevice, ABatchThatDoesNotFitIntoTheBlockIsRefused) {
  HostDevice device({.buffer_bytes = 4096});
  Acquired acquired = device.acquire(1);
  const auto array = bytes_from_length(acquired.block.capacity() + 1);
  const HostBytes batch[] = {bytes_of(array)};
  EXPECT_THROW(device.copy(batch, acquired.block), UsageError);
}

TEST(HostDevice, ABlockOfAnotherDeviceIsRefused) {
  HostDevice device;
  HostDevice other;
  Acquired acquired = other.acquire(10);
  EXPECT_THROW(device.copy({}, acquired.block), UsageError);
  Block none;
  EXPECT_THROW(device.copy({}, none), UsageError);
}

TEST(HostDevice, ReadsBackWhatLiesInABlock) {
  HostDevice device;
  const auto array = bytes_from_length(100);
  const HostBytes batch[] = {bytes_of(array)};
  Acquired acquired = device.acquire(100);
  device.copy(batch, acquired.block);
  std::vector<unsigned char> part(10);
  device.read_back(std::as_writable_bytes(std::span(part)), acquired.block, 50);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), array.begin() + 50));
  const std::size_t end = acquired.block.capacity();
  EXPECT_THROW(device.read_back(std::as_writable_bytes(std::span(part)), acquired.block, end - 9),
               UsageError);
  EXPECT_THROW(device.read_back(std::as_writable_bytes(std::span(part)), acquired.block, end + 1),
               UsageError);
  EXPECT_THROW(device.read_back(std::as_writable_bytes(std::span(part)), Block(), 0), UsageError);
  device.give_back_after(std::move(acquired.block), {});
  EXPECT_EQ(device.free_buffers(), device.buffers());
}

TEST(HostDevice, SizesBeyondMemoryAreRefused) {
  const HostBytes huge(reinterpret_cast<const std::byte*>(64), std::numeric_limits<std::size_t>::max() / 3);
  const HostBytes batch[] = {huge, huge, huge};
  EXPECT_THROW(bytes_needed(batch), UsageError);
}

TEST(HostDevice, ABandwidthIsPositive) {
  for (const double bandwidth :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(HostDevice({.bandwidth = bandwidth}), UsageError);
  }
}

TEST(HostDevice, ACopyTakesAtLeastItsTimeOnTheBus) {
  HostDevice device({.bandwidth = 10e6});
  const auto array = bytes_from_length(100'000);  // 10 ms
  const HostBytes batch[] = {bytes_of(array)};
  Acquired acquired = device.acquire(array.size());
  const auto began = std::chrono::steady_clock::now();
  const Copied copied = device.copy(batch, acquired.block);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 10ms);
  EXPECT_GE(copied.completion.copy_ns(), 10'000'000);
}

TEST(HostDevice, AThrottledCopySleeps) {
  HostDevice device({.bandwidth = 1e6});
  const auto array = bytes_from_length(100'000);  // 100 ms
  const HostBytes batch[] = {bytes_of(array)};
  Acquired acquired = device.acquire(array.size());
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  device.copy(batch, acquired.block);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const double cpu_s = static_cast<double>(after.tv_sec - before.tv_sec) +
                       static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(cpu_s, 0.05);
}

TEST(HostDevice, TwoThreadsShareTheOneBus) {
  HostDevice device({.bandwidth = 5e6});
  const auto array = bytes_from_length(50'000);  // 10 ms each
  const HostBytes batch[] = {bytes_of(array)};
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Acquired acquired = device.acquire(array.size());
      device.copy(batch, acquired.block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
}

TEST(HostDevice, CancelEndsAThrottledCopyAndTheBytesAreThere) {
  HostDevice device({.bandwidth = 1e-300});
  const auto array = bytes_from_length(1000);
  const HostBytes batch[] = {bytes_of(array)};
  Acquired acquired = device.acquire(array.size());
  std::thread canceller([&] {
    std::this_thread::sleep_for(10ms);
    device.cancel();
  });
  device.copy(batch, acquired.block);
  canceller.join();
  EXPECT_EQ(std::memcmp(acquired.block.data(), array.data(), array.size()), 0);
  EXPECT_EQ(device.acquire(1).outcome, AcquireOutcome::cancelled);
}

TEST(OpenDevice, TheHostIsAlwaysThere) {
  const auto device = open_device("cpu", {.buffers = 2, .buffer_bytes = 10});
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_EQ(device->buffers(), 2U);
  EXPECT_EQ(device->free_buffers(), 2U);
  EXPECT_EQ(device->memory_kind(), MemoryKind::host);
}

TEST(OpenDevice, ADeviceThatIsNotThereNamesThoseThatAre) {
  for (const char* name : {"tpu", "", "cpu:1", "CPU"}) {
    try {
      open_device(name);
      FAIL() << name;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("\"" + std::string(name) + "\""), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("cpu"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace headrace::transport
