// boost::lockfree::queue: nodes from a pool, linked.
#include <boost/lockfree/queue.hpp>

#include "transfer.h"

namespace {

using namespace headrace::bench;
using Queue = boost::lockfree::queue<std::uint64_t, boost::lockfree::fixed_sized<true>>;

void put(Queue& queue, std::uint64_t item) {
  insist([&] { return queue.bounded_push(item); });
}
std::uint64_t get(Queue& queue) {
  std::uint64_t item = 0;
  insist([&] { return queue.pop(item); });
  return item;
}

const Entered items("items", "boost::lockfree::queue", [](Crowd crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return transfer(crowd, count, [&](std::uint64_t item) { put(queue, item); }, [&] { return get(queue); });
});
const Entered one("one thread", "boost::lockfree::queue", [](Crowd, std::uint64_t count) {
  Queue queue(kCapacity);
  return alone(count, [&](std::uint64_t item) { put(queue, item); }, [&] { return get(queue); });
});

}  // namespace
