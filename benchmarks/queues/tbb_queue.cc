// oneTBB's concurrent_bounded_queue: bare, as the kind TbbQueue, and with its own waiting.
#include "headrace/queues/tbb_queue.h"

#include <oneapi/tbb/concurrent_queue.h>

#include "kinds.h"

namespace {

using namespace headrace::bench;
using Queue = tbb::concurrent_bounded_queue<std::uint64_t>;
using Kind = headrace::queues::TbbQueue<std::uint64_t>;

const Entered items("items", "tbb::concurrent_bounded_queue", [](Crowd crowd, std::uint64_t count) {
  Queue queue;
  queue.set_capacity(kCapacity);
  return transfer(
      crowd, count, [&](std::uint64_t item) { insist([&] { return queue.try_push(item); }); },
      [&] {
        std::uint64_t item = 0;
        insist([&] { return queue.try_pop(item); });
        return item;
      });
});
const Entered kind_items("items", "TbbQueue (counters)", transfer_through_kind<Kind>);
const Entered kind_one("one thread", "TbbQueue (counters)", alone_with_kind<Kind>);
const Entered waiting("waiting", "tbb::concurrent_bounded_queue", [](Crowd crowd, std::uint64_t count) {
  Queue queue;
  queue.set_capacity(kCapacity);
  return transfer(
      crowd, count, [&](std::uint64_t item) { queue.push(item); },
      [&] {
        std::uint64_t item = 0;
        queue.pop(item);
        return item;
      });
});

}  // namespace
