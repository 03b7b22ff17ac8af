// The blocking layer: spins, then sleeps on a futex event count.
#include "headrace/queues/bounded_queue.h"

#include "headrace/queues/mpmc_ring.h"
#include "transfer.h"

namespace {

using namespace headrace::bench;
using Queue = headrace::queues::BoundedQueue<headrace::queues::MpmcRing<std::uint64_t>>;

const Entered waiting("waiting", "BoundedQueue<MpmcRing>", [](Crowd crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return transfer(
      crowd, count, [&](std::uint64_t item) { queue.put(std::move(item)); }, [&] { return *queue.get(); });
});
const Entered one("one thread", "BoundedQueue<MpmcRing>", [](Crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return alone(count, [&](std::uint64_t item) { queue.put(std::move(item)); }, [&] { return *queue.get(); });
});

}  // namespace
