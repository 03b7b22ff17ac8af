#include "headrace/transport/block_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/transport/host_device.h"

namespace headrace::transport {
namespace {

using namespace std::chrono_literals;

/// Counts what is made and released; refuses blocks above `limit`.
class CountedMemory : public BlockMemory {
 public:
  struct Counts {
    std::atomic<int> made{0};
    std::atomic<int> released{0};
    std::size_t limit = std::size_t{1} << 30;
  };
  explicit CountedMemory(std::shared_ptr<Counts> counts) : counts_(std::move(counts)) {}
  std::byte* allocate(std::size_t bytes) override {
    if (bytes > counts_->limit) throw DeviceError("no more");
    ++counts_->made;
    return memory_.allocate(bytes);
  }
  void release(std::byte* data, std::size_t bytes) noexcept override {
    ++counts_->released;
    memory_.release(data, bytes);
  }

 private:
  std::shared_ptr<Counts> counts_;
  HostMemory memory_;
};

struct Ring {
  std::shared_ptr<CountedMemory::Counts> counts = std::make_shared<CountedMemory::Counts>();
  std::shared_ptr<BlockRing> ring;
  explicit Ring(std::size_t buffers, std::size_t buffer_bytes = 0, std::size_t max_bytes = 1 << 20)
      : ring(BlockRing::make(std::make_unique<CountedMemory>(counts), buffers, buffer_bytes, max_bytes)) {}
};

auto in_the_past() { return BlockRing::Clock::now() - 1s; }

TEST(BlockRing, LendsEachBlockOnceAndTakesItBack) {
  const Ring of(2, 4096);
  Acquired first = of.ring->acquire(100);
  Acquired second = of.ring->acquire(100);
  ASSERT_TRUE(first.block && second.block);
  EXPECT_NE(first.block.data(), second.block.data());
  EXPECT_EQ(of.ring->acquire(100, in_the_past()).outcome, AcquireOutcome::timed_out);
  EXPECT_EQ(of.ring->acquire(100, BlockRing::Clock::time_point::min()).outcome, AcquireOutcome::timed_out);
  std::byte* const lent = first.block.data();
  first.block.give_back();
  EXPECT_FALSE(first.block);
  EXPECT_EQ(of.ring->free_blocks(), 1U);
  EXPECT_EQ(of.ring->acquire(100, in_the_past()).block.data(), lent);
  EXPECT_EQ(of.ring->free_blocks(), 1U);
}

TEST(BlockRing, BlocksAreMadeOnceAndReused) {
  Ring of(3, 4096);
  EXPECT_EQ(of.counts->made, 3);
  for (int lap = 0; lap < 20; ++lap) {
    const Acquired one = of.ring->acquire(4096);
    const Acquired other = of.ring->acquire(10);
    ASSERT_TRUE(one.block && other.block);
  }
  EXPECT_EQ(of.counts->made, 3);
  of.ring.reset();
  EXPECT_EQ(of.counts->released, 3);
}

TEST(BlockRing, WithoutASizeTheyAreMadeWhenFirstNeeded) {
  const Ring of(4);
  EXPECT_EQ(of.counts->made, 0);
  for (int lap = 0; lap < 5; ++lap) of.ring->acquire(5000).block.give_back();
  EXPECT_EQ(of.counts->made, 1);
}

TEST(BlockRing, ALargerBatchMakesABlockGrowWithRoomToSpare) {
  const Ring of(1, 4096);
  Acquired grown = of.ring->acquire(5000);
  EXPECT_GE(grown.block.capacity(), 4096U + 2048U);
  EXPECT_EQ(of.counts->made, 2);
  EXPECT_EQ(of.counts->released, 1);
  grown.block.give_back();
  of.ring->acquire(6000).block.give_back();
  EXPECT_EQ(of.counts->made, 2);
}

TEST(BlockRing, ABlockThatIsLargeEnoughIsPreferredToOneThatMustGrow) {
  const Ring of(2, 4096);
  Acquired large = of.ring->acquire(100'000);
  Acquired small = of.ring->acquire(10);
  std::byte* const wanted = large.block.data();
  large.block.give_back();
  small.block.give_back();  // the last one back is the small one
  EXPECT_EQ(of.ring->acquire(90'000).block.data(), wanted);
}

TEST(BlockRing, ABatchAboveTheLimitIsRefusedAndSaysWhatToDo) {
  const Ring of(1, 0, 8192);
  try {
    of.ring->acquire(8193);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("8193"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("max_buffer_bytes"), std::string::npos);
  }
  EXPECT_TRUE(of.ring->acquire(8192).block);
}

TEST(BlockRing, SizesThatCannotBeAreRefused) {
  EXPECT_THROW(Ring(0), UsageError);
  EXPECT_THROW(Ring(1'000'000), UsageError);
  EXPECT_THROW(Ring(2, 4096, 1024), UsageError);
}

TEST(BlockRing, ABlockThatCannotGrowStaysInTheRing) {
  const Ring of(1, 4096);
  of.counts->limit = 10'000;
  EXPECT_THROW(of.ring->acquire(50'000), DeviceError);
  EXPECT_EQ(of.ring->free_blocks(), 1U);
  EXPECT_TRUE(of.ring->acquire(4096).block);
}

TEST(BlockRing, ABatchOfNoBytesGetsABlockToo) {
  const Ring of(1);
  EXPECT_TRUE(of.ring->acquire(0).block);
}

TEST(BlockRing, AWaitEndsWhenABlockComesBack) {
  const Ring of(1, 64);
  Acquired held = of.ring->acquire(1);
  std::atomic<bool> got{false};
  std::int64_t waited_ns = 0;
  std::thread waiter([&] {
    const Acquired later = of.ring->acquire(1);
    waited_ns = later.waited_ns;
    got = static_cast<bool>(later.block);
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(got);
  held.block.give_back();
  waiter.join();
  EXPECT_TRUE(got);
  EXPECT_GT(waited_ns, 0);
  EXPECT_EQ(of.ring->acquire(1).waited_ns, 0);
}

TEST(BlockRing, CancelEndsWaitsUntilResume) {
  const Ring of(1, 64);
  Acquired held = of.ring->acquire(1);
  AcquireOutcome outcome = AcquireOutcome::acquired;
  std::thread waiter([&] { outcome = of.ring->acquire(1).outcome; });
  std::this_thread::sleep_for(5ms);
  of.ring->cancel();
  waiter.join();
  EXPECT_EQ(outcome, AcquireOutcome::cancelled);
  held.block.give_back();
  EXPECT_EQ(of.ring->acquire(1).outcome, AcquireOutcome::cancelled);
  EXPECT_FALSE(of.ring->sleep_until(BlockRing::Clock::time_point::max()));
  of.ring->resume();
  EXPECT_EQ(of.ring->acquire(1).outcome, AcquireOutcome::acquired);
}

TEST(BlockRing, ABlockOutlivesTheRing) {
  Ring of(2, 4096);
  Acquired held = of.ring->acquire(1);
  of.ring.reset();
  EXPECT_EQ(of.counts->released, 0);
  held.block.data()[0] = std::byte{1};
  std::thread([block = std::move(held.block)]() mutable { block.give_back(); }).join();
  EXPECT_EQ(of.counts->released, 2);
}

TEST(BlockRing, MovingABlockGivesBackWhatItReplaces) {
  const Ring of(2, 64);
  Acquired first = of.ring->acquire(1);
  Acquired second = of.ring->acquire(1);
  std::byte* const kept = second.block.data();
  first.block = std::move(second.block);
  EXPECT_EQ(first.block.data(), kept);
  EXPECT_FALSE(second.block);  // NOLINT(bugprone-use-after-move): empty is what a moved-from block is
  EXPECT_EQ(of.ring->free_blocks(), 1U);
}

TEST(BlockRing, AFenceTravelsWithTheMemory) {
  const Ring of(1, 64);
  const auto fence = std::make_shared<int>(7);
  Acquired first = of.ring->acquire(1);
  EXPECT_EQ(first.block.fence(), nullptr);
  first.block.fence() = fence;
  first.block.give_back();
  EXPECT_EQ(of.ring->acquire(1).block.fence(), fence);
}

TEST(BlockRing, ManyThreadsNeverShareABlock) {
  const Ring of(3, 64);
  std::atomic<bool> shared{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const Acquired acquired = of.ring->acquire(sizeof(int));
        auto* const word = reinterpret_cast<int*>(acquired.block.data());
        *word = t;
        std::this_thread::yield();
        if (*word != t) shared = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
  EXPECT_EQ(of.ring->free_blocks(), 3U);
}

TEST(HostMemory, IsAlignedAndZero) {
  HostMemory memory;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{5} << 20}) {
    std::byte* const data = memory.allocate(bytes);
    const std::size_t alignment = bytes >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : kAlignment;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U);
    EXPECT_EQ(data[bytes - 1], std::byte{0});
    data[0] = data[bytes - 1] = std::byte{1};
    memory.release(data, bytes);
  }
  EXPECT_THROW(memory.allocate(std::size_t{1} << 62), DeviceError);
  EXPECT_THROW(memory.allocate(std::size_t{1} << 46), DeviceError);
}

}  // namespace
}  // namespace headrace::transport
