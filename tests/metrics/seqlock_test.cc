#include "headrace/metrics/seqlock.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "headrace/metrics/relaxed.h"
#include "metrics/zeroed.h"

namespace headrace::metrics {
namespace {

struct Group {
  Seqlock lock;
  std::array<Relaxed<std::uint64_t>, 8> cells;
};

/// Whatever a reader accepts was written by one update: all cells hold the same number.
TEST(Seqlock, ShowsOneUpdateAtATime) {
  Zeroed<Group> group;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
      {
        const SeqlockWrite write(group->lock);
        for (auto& cell : group->cells) cell.store(i);
      }
      // A pause between updates, as every writer has one: a writer that never rests lets no reader through.
      for (int pause = 0; pause < 200; ++pause) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
  int accepted = 0;
  for (int attempt = 0; attempt < 2'000'000 && accepted < 2'000; ++attempt) {
    const std::uint32_t begin = group->lock.read_begin();
    std::array<std::uint64_t, 8> copy{};
    for (std::size_t i = 0; i < copy.size(); ++i) copy[i] = group->cells[i].load();
    if (!group->lock.read_valid(begin)) continue;
    ++accepted;
    for (const std::uint64_t value : copy) ASSERT_EQ(value, copy[0]);
  }
  stop.store(true);
  writer.join();
  EXPECT_GT(accepted, 0);
}

TEST(Seqlock, RefusesWhatIsHalfWritten) {
  Seqlock lock{};
  const std::uint32_t before = lock.read_begin();
  lock.write_begin();
  EXPECT_FALSE(lock.read_valid(before));
  const std::uint32_t within = lock.read_begin();
  EXPECT_FALSE(lock.read_valid(within)) << "an odd number is never valid, however long it stays";
  lock.write_end();
  EXPECT_FALSE(lock.read_valid(within));
  EXPECT_TRUE(lock.read_valid(lock.read_begin()));
}

}  // namespace
}  // namespace headrace::metrics
