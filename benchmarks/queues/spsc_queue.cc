// One to one: boost's ring bare, and as the kind SpscQueue.
#include "headrace/queues/spsc_queue.h"

#include "kinds.h"

namespace {

using namespace headrace::bench;
using Queue = boost::lockfree::spsc_queue<std::uint64_t>;
using Kind = headrace::queues::SpscQueue<std::uint64_t>;

void put(Queue& queue, std::uint64_t item) {
  insist([&] { return queue.push(item); });
}
std::uint64_t get(Queue& queue) {
  std::uint64_t item = 0;
  insist([&] { return queue.pop(item); });
  return item;
}

const Entered items("items, one to one", "boost::lockfree::spsc_queue", [](Crowd crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return transfer(crowd, count, [&](std::uint64_t item) { put(queue, item); }, [&] { return get(queue); });
});
const Entered one("one thread", "boost::lockfree::spsc_queue", [](Crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return alone(count, [&](std::uint64_t item) { put(queue, item); }, [&] { return get(queue); });
});
const Entered kind_items("items, one to one", "SpscQueue (counters)", transfer_through_kind<Kind>);
const Entered kind_one("one thread", "SpscQueue (counters)", alone_with_kind<Kind>);

}  // namespace
