#include "headrace/trace/names.h"

#include <cstring>
#include <tuple>

namespace headrace::trace {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::uint64_t kMultiplier = 0x9fb21c651e98df25ULL;

std::uint64_t load(const char* from, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

/// Eight bytes at a time: names of kernels are hundreds of bytes long, and each event has one.
std::uint32_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = text.size() * kMultiplier;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) {
    hash = (hash ^ load(at, 8)) * kMultiplier;
    hash ^= hash >> 32;
  }
  if (left > 0) hash = (hash ^ load(at, left)) * kMultiplier;
  hash ^= hash >> 29;
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

/// Length, both ends and the middle.
std::size_t glance_at(std::string_view text) noexcept {
  const char* const at = text.data();
  const std::size_t size = text.size();
  std::uint64_t seen = 0;
  if (size >= 8) {
    seen = load(at, 8) * kMultiplier ^ load(at + size - 8, 8);
    seen = seen * kMultiplier ^ load(at + (size - 8) / 2, 8);
  } else if (size >= 4) {
    seen = load(at, 4) << 32 ^ load(at + size - 4, 4);
  } else if (size > 0) {
    seen = static_cast<std::uint64_t>(static_cast<unsigned char>(at[0])) << 16 |
           static_cast<std::uint64_t>(static_cast<unsigned char>(at[size / 2])) << 8 |
           static_cast<unsigned char>(at[size - 1]);
  }
  return static_cast<std::size_t>((seen ^ size) * kMultiplier >> 54);
}

}  // namespace

Names::Names() : slots_(kFirstSlots) { intern({}); }

/// The slot that holds `text`, or the free one where it belongs.
std::size_t Names::slot_of(std::string_view text, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id != missing && (slots_[at].hash != hash || (*this)[slots_[at].id] != text))
    at = (at + 1) & mask;
  return at;
}

Names::Id Names::intern(std::string_view text) {
  const std::size_t glance = glance_at(text);
  static_assert(std::tuple_size_v<decltype(recent_)> == std::size_t{1} << (64 - 54));
  if (const Id id = recent_[glance]; id < size() && (*this)[id] == text) return id;
  return recent_[glance] = intern_new_or_old(text);
}

Names::Id Names::intern_new_or_old(std::string_view text) {
  const std::uint32_t hash = hash_of(text);
  const std::size_t at = slot_of(text, hash);
  if (slots_[at].id != missing) return slots_[at].id;
  const Id id = static_cast<Id>(size());
  texts_.append(text);
  offsets_.push_back(texts_.size());
  slots_[at] = {hash, id};
  if (2 * size() > slots_.size()) grow();
  return id;
}

Names::Id Names::find(std::string_view text) const noexcept {
  return slots_[slot_of(text, hash_of(text))].id;
}

void Names::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == missing) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].id != missing) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

std::size_t Names::bytes() const noexcept {
  return texts_.capacity() + offsets_.capacity() * sizeof(std::uint64_t) + slots_.capacity() * sizeof(Slot);
}

}  // namespace headrace::trace
