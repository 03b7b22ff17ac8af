#include "memory/lifetimes.h"

#include <memory_resource>
#include <random>
#include <unordered_map>

namespace headrace::memory {
namespace {

/// Addresses of a file, which somebody may have chosen to collide, are spread by a number drawn here.
class HashOfAddress {
 public:
  explicit HashOfAddress(std::uint64_t seed) : seed_(seed) {}
  std::size_t operator()(std::int64_t address) const noexcept {
    std::uint64_t hash = (static_cast<std::uint64_t>(address) ^ seed_) * 0x9fb21c651e98df25ULL;
    hash = (hash ^ hash >> 32) * 0x9fb21c651e98df25ULL;
    return hash ^ hash >> 29;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

void join_lifetimes(Events& events, const std::vector<DeviceEvents>& devices) {
  events.other_end.resize(events.count(), kNone);
  std::random_device random;
  const HashOfAddress hash(std::uint64_t{random()} << 32 | random());
  for (const DeviceEvents& device : devices) {
    std::pmr::unsynchronized_pool_resource nodes;
    std::pmr::unordered_map<std::int64_t, std::uint32_t, HashOfAddress> live(64, hash, &nodes);
    for (std::uint32_t row = device.first; row < device.first + device.count; ++row) {
      if (events.action[row] == Action::alloc) {
        const auto [place, is_new] = live.try_emplace(events.address[row], row);
        if (is_new) continue;
        // Its end was not recorded.
        events.other_end[place->second] = row;
        place->second = row;
      } else if (events.action[row] == Action::free_completed) {
        const auto place = live.find(events.address[row]);
        if (place == live.end()) continue;
        events.other_end[place->second] = row;
        events.other_end[row] = place->second;
        live.erase(place);
      }
    }
  }
}

}  // namespace headrace::memory
