#include <array>
#include <filesystem>
#include <memory_resource>
#include <random>
#include <span>
#include <system_error>
#include <unordered_map>

#include "headrace/memory/snapshot.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/byte_source.h"
#include "memory/pickle_reader.h"
#include "memory/record_builder.h"

namespace headrace::memory {
namespace {

constexpr std::string_view kArchive = "PK\x03\x04";

bool begins_as_pickle(std::string_view first) noexcept {
  constexpr char kProto = '\x80';
  return first.size() > 1 && first[0] == kProto && first[1] >= 2 && first[1] <= 5;
}

void refuse_others(std::string_view first, const std::string& name) {
  if (first == kArchive)
    throw FormatError(
        name,
        "no memory snapshot but an archive, as torch.save writes it (unpack a zip with a trace in it); "
        "torch.cuda.memory._dump_snapshot(path) writes a snapshot");
  if (!first.empty() && !begins_as_pickle(first))
    throw FormatError(name,
                      "no memory snapshot, which is a pickle of protocol 2 to 5: "
                      "torch.cuda.memory._dump_snapshot(path) writes one");
}

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

/// Fills `events.other_end`.
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

}  // namespace

Snapshot read_snapshot(trace::ByteSource& source, const std::string& name) {
  Snapshot snapshot;
  snapshot.path = name;
  trace::GzipStream inflated(source, name);
  trace::PeekedBytes bytes(inflated, kArchive.size());
  refuse_others(bytes.first(), name);
  RecordBuilder records(snapshot);
  PickleReader reader(bytes, name, records);
  const char* wrong = nullptr;
  try {
    wrong = records.finish(reader.read());
  } catch (const FormatError&) {
    if (!inflated.damage().empty()) throw FormatError(name, inflated.damage());
    throw;
  }
  if (wrong != nullptr) throw FormatError(name, std::string("a pickle, but not as expected: ") + wrong);
  join_lifetimes(snapshot.events, snapshot.devices);
  return snapshot;
}

Snapshot read_snapshot(const std::string& path) {
  trace::FileBytes file(path);
  return read_snapshot(file, path);
}

bool holds_pickle(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  try {
    trace::FileBytes file(path);
    trace::GzipStream inflated(file, path);
    const trace::PeekedBytes bytes(inflated, kArchive.size());
    return begins_as_pickle(bytes.first()) || bytes.first() == kArchive;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace headrace::memory
