// The CUDA device, on a driver that is none (fake_cuda); with a real one, what is written here holds too.
#include "headrace/transport/cuda_device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda/fake_cuda.h"
#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

const FakeCuda& fake() {
  static const FakeCuda* const one = [] {
    void* const library = dlopen(HEADRACE_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    return static_cast<const FakeCuda*>(dlsym(library, kFakeCudaSymbol));
  }();
  return *one;
}

/// A path to the same library that was not loaded before: a table is made once per name.
std::string fresh_path() {
  static int count = 0;
  std::string path = HEADRACE_FAKE_CUDA;
  for (int i = 0; i <= count; ++i) path.insert(path.rfind('/'), "/.");
  ++count;
  return path;
}

using Array = std::vector<std::byte>;

Array counting(std::size_t length, int from = 1) {
  Array array(length);
  for (std::size_t i = 0; i < length; ++i)
    array[i] = static_cast<std::byte>(from + static_cast<int>(i % 251));
  return array;
}

std::vector<HostBytes> batch_of(const std::vector<Array>& arrays) { return {arrays.begin(), arrays.end()}; }

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    live_before_ = fake().live();
    options_.cuda_library = HEADRACE_FAKE_CUDA;
    options_.buffers = 2;
  }
  void TearDown() override {
    device_.reset();
    fake().reset();
    EXPECT_EQ(fake().live(), live_before_) << "something was not given back to the driver";
  }
  CudaDevice& device() {
    if (!device_) device_.emplace(0, options_);
    return *device_;
  }
  Copied copy(const std::vector<Array>& arrays, Block& into) {
    const auto batch = batch_of(arrays);
    return device().copy(batch, into);
  }
  Block block(std::size_t bytes) { return std::move(device().acquire(bytes).block); }
  Array on_the_device(const Block& of, std::size_t offset, std::size_t length) {
    const auto* const first = of.data() + offset;
    return {first, first + length};  // the fake's device memory can be looked at without waiting
  }

  DeviceOptions options_;
  std::optional<CudaDevice> device_;
  int live_before_ = 0;
};

TEST_F(Cuda, CopiesABatchIntoDeviceMemory) {
  const std::vector<Array> arrays{counting(1000), counting(0), counting(5), counting(9 << 20)};
  Block into = block(bytes_needed(batch_of(arrays)));
  EXPECT_TRUE(fake().is_device_memory(into.data()));
  const Copied copied = copy(arrays, into);
  copied.completion.wait();
  EXPECT_TRUE(copied.completion.done());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Array back(arrays[i].size());
    device().read_back(back, into, copied.offsets[i]);
    EXPECT_EQ(back, arrays[i]);
  }
  EXPECT_EQ(copied.bytes, 1005 + (9 << 20));
  EXPECT_EQ(copied.pageable_bytes, copied.bytes);
  EXPECT_EQ(copied.pinned_bytes, 0);
}

TEST_F(Cuda, GoesOnByItselfAndTellsItsTime) {
  const std::vector<Array> arrays{counting(4096)};
  Block into = block(4096);
  fake().hold(nullptr);
  const Copied copied = copy(arrays, into);
  EXPECT_FALSE(copied.completion.done());
  EXPECT_LT(copied.completion.copy_ns(), 0);
  fake().let_go();
  EXPECT_TRUE(copied.completion.done());
  EXPECT_EQ(copied.completion.copy_ns(), 4096);
}

TEST_F(Cuda, PageableArraysAreStagedSoTheCallerMayReuseThem) {
  std::vector<Array> arrays{counting(10 << 20)};
  const Array as_it_was = arrays[0];
  Block into = block(arrays[0].size());
  fake().hold(nullptr);
  const Copied copied = copy(arrays, into);
  std::fill(arrays[0].begin(), arrays[0].end(), std::byte{0});
  copied.completion.wait();
  EXPECT_EQ(on_the_device(into, 0, as_it_was.size()), as_it_was);
}

TEST_F(Cuda, NeighboursGoInOneOrder) {
  const std::vector<Array> small(100, counting(1000));
  Block into = block(200'000);
  copy(small, into).completion.wait();
  EXPECT_EQ(fake().calls("cuMemcpyHtoDAsync_v2"), 1);
}

TEST_F(Cuda, PinnedArraysAreCopiedAsTheyAre) {
  const auto driver = CudaDriver::load(options_.cuda_library);
  Block into = block(300);
  Block elsewhere = block(300);
  // Page-locked memory of the caller's own.
  CudaContextHandle context = nullptr;
  driver->primary_context_retain(&context, 0);
  driver->context_push(context);
  void* pinned = nullptr;
  ASSERT_EQ(driver->mem_host_alloc(&pinned, 100, 0), kCudaSuccess);
  std::memset(pinned, 7, 100);
  const Array pageable = counting(100);
  const HostBytes batch[] = {pageable, HostBytes(static_cast<std::byte*>(pinned), 100), pageable};
  fake().hold(nullptr);
  const Copied copied = device().copy(batch, into);
  EXPECT_EQ(copied.pinned_bytes, 100);
  EXPECT_EQ(copied.pageable_bytes, 200);
  static_cast<std::byte*>(pinned)[0] = std::byte{9};  // too early: the engine has not read it
  copied.completion.wait();
  EXPECT_EQ(into.data()[copied.offsets[1]], std::byte{9});
  EXPECT_EQ(on_the_device(into, copied.offsets[0], 100), pageable);
  EXPECT_EQ(on_the_device(into, copied.offsets[2], 100), pageable);
  driver->mem_free_host(pinned);
  driver->context_pop(&context);
  driver->primary_context_release(0);
}

TEST_F(Cuda, WithoutPinningTheDriverReadsThem) {
  options_.pin = false;
  const std::vector<Array> arrays{counting(1000)};
  Block into = block(1000);
  copy(arrays, into).completion.wait();
  EXPECT_EQ(on_the_device(into, 0, 1000), arrays[0]);
  EXPECT_EQ(fake().calls("cuMemHostAlloc"), 0);
}

TEST_F(Cuda, AStagingBufferIsNotReusedBeforeTheEngineHasReadIt) {
  // One block given back at once, so that copies outrun the engine; two staging buffers.
  fake().hold(nullptr);
  std::vector<Copied> all;
  Block blocks[] = {block(1000), block(1000)};
  for (int i = 0; i < 6; ++i) {
    const std::vector<Array> arrays{counting(1000, i)};
    all.push_back(copy(arrays, blocks[i % 2]));
  }
  all.clear();  // nobody asks for them any more
  fake().let_go();
  EXPECT_EQ(on_the_device(blocks[0], 0, 1000), counting(1000, 4));
  EXPECT_EQ(on_the_device(blocks[1], 0, 1000), counting(1000, 5));
}

TEST_F(Cuda, AStreamWaitsForTheCopyWithoutTheHost) {
  const auto driver = CudaDriver::load(options_.cuda_library);
  Block into = block(100);
  CudaContextHandle context = nullptr;
  driver->primary_context_retain(&context, 0);
  driver->context_push(context);
  CudaStream consumer = nullptr;
  CudaEvent consumed = nullptr;
  driver->stream_create(&consumer, kCudaStreamNonBlocking);
  driver->event_create(&consumed, 0);
  fake().hold(nullptr);
  const Copied copied = copy({counting(100)}, into);
  device().make_stream_wait(consumer, copied.completion);
  driver->event_record(consumed, consumer);
  EXPECT_EQ(driver->event_query(consumed), kCudaErrorNotReady);
  fake().let_go();
  EXPECT_EQ(driver->event_query(consumed), kCudaSuccess);
  device().make_stream_wait(consumer, Completion());  // of a copy that was complete at once

  // A block that is given back while the consumer's kernels read it.
  fake().hold(consumer);
  driver->event_record(consumed, consumer);  // a kernel, as far as this stream is concerned
  std::byte* const address = into.data();
  Block other = block(100);
  void* const streams[] = {consumer};
  device().give_back_after(std::move(into), streams);
  Block again = block(100);
  ASSERT_EQ(again.data(), address);
  const Copied later = copy({counting(100, 50)}, again);
  EXPECT_FALSE(later.completion.done());
  EXPECT_EQ(on_the_device(again, 0, 100), counting(100)) << "the kernel still reads this";
  fake().let_go();
  EXPECT_TRUE(later.completion.done());
  EXPECT_EQ(on_the_device(again, 0, 100), counting(100, 50));
  driver->event_destroy(consumed);
  driver->stream_destroy(consumer);
  driver->context_pop(&context);
  driver->primary_context_release(0);
}

TEST_F(Cuda, FailuresCarryCudasOwnName) {
  Block into = block(100);
  fake().fail("cuMemcpyHtoDAsync_v2", 700, 0);
  const std::string message = message_of([&] { copy({counting(100)}, into); });
  EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << message;
  EXPECT_NE(message.find("cuMemcpyHtoDAsync"), std::string::npos) << message;
  copy({counting(100)}, into).completion.wait();  // the next one is not affected
  fake().fail("cuEventRecord", 9999, 0);
  EXPECT_NE(message_of([&] { copy({counting(100)}, into); }).find("unknown error (9999)"), std::string::npos);
}

TEST_F(Cuda, NoMemoryOnTheDeviceIsSaidWithItsSize) {
  const std::string message = message_of([&] { device().acquire(std::size_t{3} << 30); });
  EXPECT_NE(message.find(std::to_string(std::size_t{3} << 30)), std::string::npos) << message;
  EXPECT_NE(message.find("CUDA_ERROR_OUT_OF_MEMORY (2), out of memory"), std::string::npos) << message;
  EXPECT_EQ(device().free_buffers(), 2U);
}

TEST_F(Cuda, ACopyThatFailsOnTheDeviceFailsForEveryHolder) {
  Block into = block(100);
  fake().hold(nullptr);
  const Copied copied = copy({counting(100)}, into);
  const Completion same = copied.completion;
  fake().fail("cuEventQuery", 700, 0);
  EXPECT_THROW(copied.completion.done(), DeviceError);
  EXPECT_THROW(same.done(), DeviceError);
  EXPECT_THROW(same.wait(), DeviceError);
}

TEST_F(Cuda, AWaitThatFailsIsAnError) {
  Block into = block(100);
  fake().hold(nullptr);
  const Copied copied = copy({counting(100)}, into);
  fake().fail("cuEventSynchronize", 700, 0);
  EXPECT_THROW(copied.completion.wait(), DeviceError);
}

TEST_F(Cuda, OpeningThatFailsGivesEverythingBack) {
  for (const char* function :
       {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate"}) {
    fake().fail(function, 1, 0);
    EXPECT_NE(message_of([&] { CudaDevice(0, options_); }).find("CUDA_ERROR_INVALID_VALUE"),
              std::string::npos)
        << function;
  }
  options_.buffer_bytes = 1000;
  for (const char* function : {"cuMemAlloc_v2", "cuMemHostAlloc"}) {
    fake().fail(function, 2, 1);  // the second of the ring
    EXPECT_NE(message_of([&] { CudaDevice(0, options_); }).find("CUDA_ERROR_OUT_OF_MEMORY"),
              std::string::npos)
        << function;
    EXPECT_EQ(fake().live(), live_before_) << function;
  }
}

TEST_F(Cuda, BlocksAndCompletionsOutliveTheDevice) {
  Block into = block(100);
  fake().hold(nullptr);
  Copied copied = copy({counting(100)}, into);
  device_.reset();
  copied.completion.wait();
  EXPECT_EQ(on_the_device(into, 0, 100), counting(100));
}

TEST_F(Cuda, ThreadsTakeTurns) {
  device();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Array array = counting(2000, t);
        const HostBytes batch[] = {array};
        Acquired acquired = device().acquire(array.size());
        const Copied copied = device().copy(batch, acquired.block);
        copied.completion.wait();
        if (on_the_device(acquired.block, 0, array.size()) != array) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Cuda, ABandwidthIsForHostMemory) {
  options_.bandwidth = 1e9;
  EXPECT_THROW(CudaDevice(0, options_), UsageError);
}

TEST_F(Cuda, ReadingBackStaysWithinTheBlock) {
  Block from = block(100);
  Array to(from.capacity());
  EXPECT_THROW(device().read_back(to, from, 1), UsageError);
  EXPECT_THROW(device().read_back(to, Block(), 0), UsageError);
}

TEST_F(Cuda, OpenDeviceKnowsTheNames) {
  EXPECT_EQ(available_devices(options_), (std::vector<std::string>{"cpu", "cuda:0", "cuda:1"}));
  EXPECT_EQ(open_device("cuda", options_)->name(), "cuda:0");
  const auto second = open_device("cuda:1", options_);
  EXPECT_EQ(second->name(), "cuda:1");
  EXPECT_EQ(second->index(), 1);
  EXPECT_EQ(second->memory_kind(), MemoryKind::cuda);
  for (const char* name :
       {"cuda:2", "cuda:", "cuda:-1", "cuda:+1", "cuda:1x", "cudart", "cuda:99999999999", "gpu"}) {
    const std::string message = message_of([&] { open_device(name, options_); });
    EXPECT_NE(message.find("cpu, cuda:0, cuda:1"), std::string::npos) << message;
  }
}

TEST_F(Cuda, WithoutADriverTheHostIsWhatThereIs) {
  options_.cuda_library = "libthere-is-no-such-driver.so.1";
  EXPECT_EQ(available_devices(options_), std::vector<std::string>{"cpu"});
  const std::string message = message_of([&] { open_device("cuda", options_); });
  EXPECT_NE(message.find("no device \"cuda\" here; there is: cpu (CUDA: libthere-is-no-such-driver.so.1"),
            std::string::npos)
      << message;
}

TEST_F(Cuda, ALibraryThatIsNoDriverIsSaid) {
  EXPECT_NE(message_of([] { CudaDriver::load("libm.so.6"); }).find("libm.so.6 has no function cuInit"),
            std::string::npos);
}

TEST_F(Cuda, ADriverThatCannotStartIsSaid) {
  options_.cuda_library = fresh_path();
  fake().fail("cuInit", 100, 0);
  EXPECT_NE(message_of([&] { open_device("cuda", options_); }).find("cuInit: CUDA_ERROR_NO_DEVICE"),
            std::string::npos);
  fake().set_devices(0);
  EXPECT_NE(message_of([&] { open_device("cuda", options_); }).find("CUDA_ERROR_NO_DEVICE"),
            std::string::npos);
  fake().set_devices(1);
  EXPECT_EQ(open_device("cuda", options_)->name(), "cuda:0");  // asked again, it is looked for again
}

}  // namespace
}  // namespace headrace::transport
