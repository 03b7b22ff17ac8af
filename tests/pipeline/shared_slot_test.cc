#include "headrace/pipeline/shared_slot.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::pipeline {
namespace {

constexpr std::int64_t kMuch = 1 << 30;

TEST(SharedSlot, IsSeenByWhoMapsItToo) {
  const auto ours = SharedSlot::create(1000);
  const auto theirs = SharedSlot::attach(ours->descriptor());
  ours->close_descriptor();
  EXPECT_EQ(ours->descriptor(), -1);
  ASSERT_EQ(theirs->data().size(), 1000U);
  EXPECT_NE(theirs->data().data(), ours->data().data());
  std::fill(ours->data().begin(), ours->data().end(), std::byte{7});
  EXPECT_EQ(std::count(theirs->data().begin(), theirs->data().end(), std::byte{7}), 1000);
}

TEST(SharedSlot, IsClaimedAgainOnlyAfterTheOtherSideReleasedIt) {
  const auto ours = SharedSlot::create(64);
  const auto theirs = SharedSlot::attach(ours->descriptor());
  EXPECT_FALSE(ours->claim()) << "it is made for what is to be sent now";
  theirs->release();
  EXPECT_TRUE(ours->claim());
  EXPECT_FALSE(ours->retire());
  theirs->release();
  EXPECT_TRUE(ours->retire());
  EXPECT_TRUE(theirs->retired());
  EXPECT_FALSE(ours->claim());
}

TEST(SharedSlot, RefusesDescriptorsOfSomethingElse) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_THROW(SharedSlot::attach(ends[0]), Error);
  EXPECT_THROW(SharedSlot::attach(-1), Error);
  close(ends[0]);
  close(ends[1]);
}

TEST(SlotSender, UsesReleasedSlotsAgain) {
  SlotSender sender(kMuch);
  const auto first = sender.claim(100'000);
  const auto second = sender.claim(100'000);
  EXPECT_NE(first.number, second.number);
  first.slot->release();
  EXPECT_EQ(sender.claim(99'000).number, first.number);
  EXPECT_NE(sender.claim(99'000).number, second.number) << "it is still being read";
}

TEST(SlotSender, LendsWhatIsBeyondItsBytes) {
  SlotSender sender(300'000);
  std::vector<SlotSender::Claimed> held;
  for (int i = 0; i < 4; ++i) held.push_back(sender.claim(100'000));
  EXPECT_FALSE(held.front().is_lent);
  EXPECT_TRUE(held.back().is_lent);
  EXPECT_LE(sender.bytes(), 300'000);
  for (const auto& one : held) one.slot->release();
  EXPECT_FALSE(sender.claim(100'000).is_lent);
}

TEST(SlotSender, MakesRoomOfFreeSlotsThatAreTooSmall) {
  SlotSender sender(1'000'000);
  SlotReceiver receiver;
  std::vector<SlotSender::Claimed> small;
  for (int i = 0; i < 6; ++i) {
    small.push_back(sender.claim(100'000));
    receiver.add(small.back().number, small.back().slot->descriptor());
  }
  for (const auto& one : small) one.slot->release();
  const auto large = sender.claim(800'000);
  EXPECT_FALSE(large.is_lent);
  EXPECT_LE(sender.bytes(), 1'000'000);
  receiver.add(large.number, large.slot->descriptor());
  EXPECT_NO_THROW(receiver.find(large.number));
  EXPECT_THROW(receiver.find(small.front().number), Error) << "the reader let it go, too";
}

TEST(SlotLease, ReleasesInItsOwnProcessOnly) {
  const auto slot = SharedSlot::create(64);
  std::optional<SlotLease> lease(std::in_place, slot);  // the child must not need the allocator
  const pid_t child = fork();
  if (child == 0) {
    lease.reset();
    _exit(slot->claim() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(slot->claim());
  lease.reset();
  EXPECT_TRUE(slot->claim());
}

/// One thread stands for each process. Both look at one mapping, so that ThreadSanitizer sees both sides;
/// they meet in nothing else but the slots and the messages.
TEST(SlotSender, NeverOverwritesWhatIsBeingRead) {
  struct Sent {
    std::shared_ptr<SharedSlot> slot;
    std::uint64_t value;
  };
  constexpr std::uint64_t kItems = 3000;
  constexpr std::size_t kWords = 512;
  std::mutex mutex;
  std::deque<Sent> messages;

  std::thread writer([&] {
    SlotSender sender(1 << 20);
    for (std::uint64_t value = 1; value <= kItems;) {
      auto claimed = sender.claim(kWords * sizeof value);
      if (claimed.is_lent) continue;  // the reader is behind
      std::fill_n(reinterpret_cast<std::uint64_t*>(claimed.slot->data().data()), kWords, value);
      const std::scoped_lock lock(mutex);
      messages.push_back({std::move(claimed.slot), value++});
    }
  });

  std::deque<std::pair<std::unique_ptr<SlotLease>, std::uint64_t>> held;
  std::uint64_t wrong = 0;
  const auto check_oldest = [&] {
    const auto* from = reinterpret_cast<const std::uint64_t*>(held.front().first->data().data());
    for (std::size_t i = 0; i < kWords; ++i) wrong += from[i] != held.front().second ? 1 : 0;
    held.pop_front();
  };
  for (std::uint64_t received = 0; received < kItems;) {
    std::optional<Sent> sent;
    {
      const std::scoped_lock lock(mutex);
      if (!messages.empty()) {
        sent = std::move(messages.front());
        messages.pop_front();
      }
    }
    if (!sent) {
      std::this_thread::yield();
      continue;
    }
    held.emplace_back(std::make_unique<SlotLease>(std::move(sent->slot)), sent->value);
    if (held.size() > 5) check_oldest();
    ++received;
  }
  while (!held.empty()) check_oldest();
  writer.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace headrace::pipeline
