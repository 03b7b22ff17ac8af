// The speed of light: one thread stores into an array and loads from it, as any queue has to.
#include "transfer.h"

namespace {

using headrace::bench::Crowd;

headrace::bench::Took plain_stores(Crowd, std::uint64_t items) {
  std::vector<std::uint64_t> slots(headrace::bench::kCapacity);
  std::uint64_t tail = 0;
  std::uint64_t head = 0;
  const auto keep = [](auto& value) { asm volatile("" : "+m"(value) : : "memory"); };
  return headrace::bench::alone(
      items,
      [&](std::uint64_t item) {
        slots[tail++ % slots.size()] = item;
        keep(slots[0]);
      },
      [&] { return slots[head++ % slots.size()]; });
}

const headrace::bench::Entered items("items", "speed of light (plain stores, one thread)", plain_stores);
const headrace::bench::Entered alone("one thread", "speed of light (plain stores, one thread)", plain_stores);

}  // namespace
