// A bare ring with the same spinning and the same kind of event count as BoundedQueue, which sleeps by
// std::atomic::wait: what is left of the difference is the futex alone.
#include <atomic>

#include "bare_ring.h"
#include "transfer.h"

namespace {

using namespace headrace::bench;

/// The notifier takes whom it wakes off the count, or it would pay a system call for every item until the
/// waiter runs (EventCount counts whom it called). The count may be too high (a needless notification), never
/// too low.
class Event {
 public:
  template <class Try>
  void until(Try&& attempt) {
    for (int spin = 0; spin < 64; ++spin) {
      if (attempt()) return;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    for (;;) {
      const int epoch = epoch_.load();
      waiters_.fetch_add(1);
      if (attempt()) return;
      epoch_.wait(epoch);
    }
  }
  void notify_one() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    int waiters = waiters_.load();
    do {
      if (waiters == 0) return;
    } while (!waiters_.compare_exchange_weak(waiters, waiters - 1));
    epoch_.fetch_add(1);
    epoch_.notify_one();
  }

 private:
  alignas(64) std::atomic<int> epoch_{0};  // int: what the kernel can wait on itself
  std::atomic<int> waiters_{0};
};

const Entered waiting("waiting", "ring + event count on std::atomic::wait",
                      [](Crowd crowd, std::uint64_t count) {
                        BareRing ring(kCapacity);
                        Event not_empty;
                        Event not_full;
                        return transfer(
                            crowd, count,
                            [&](std::uint64_t item) {
                              not_full.until([&] { return ring.push(item); });
                              not_empty.notify_one();
                            },
                            [&] {
                              std::uint64_t item = 0;
                              not_empty.until([&] { return ring.pop(item); });
                              not_full.notify_one();
                              return item;
                            });
                      });

}  // namespace
