#include "bare_ring.h"

#include "transfer.h"

namespace {

using namespace headrace::bench;

void put(BareRing& ring, std::uint64_t item) {
  insist([&] { return ring.push(item); });
}
std::uint64_t get(BareRing& ring) {
  std::uint64_t item = 0;
  insist([&] { return ring.pop(item); });
  return item;
}

Took through_ring(Crowd crowd, std::uint64_t count) {
  BareRing ring(kCapacity);
  return transfer(crowd, count, [&](std::uint64_t item) { put(ring, item); }, [&] { return get(ring); });
}

const Entered items("items", "bare ring", through_ring);
const Entered rings("rings", "bare ring", through_ring);
const Entered one("one thread", "bare ring", [](Crowd, std::uint64_t count) {
  BareRing ring(kCapacity);
  return alone(count, [&](std::uint64_t item) { put(ring, item); }, [&] { return get(ring); });
});

}  // namespace
