// A bare ring with the same spinning, and std::atomic's wait and notify as they are meant to be used: a
// number that changes with every item, and no bookkeeping of waiters beside the library's own.
#include <atomic>

#include "bare_ring.h"
#include "transfer.h"

namespace {

using namespace headrace::bench;

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
      const int seen = changes_.load();
      if (attempt()) return;
      changes_.wait(seen);
    }
  }
  void notify_one() {
    changes_.fetch_add(1);
    changes_.notify_one();
  }

 private:
  alignas(64) std::atomic<int> changes_{0};  // int: what the kernel can wait on itself
};

const Entered waiting("waiting", "ring + std::atomic::wait", [](Crowd crowd, std::uint64_t count) {
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
