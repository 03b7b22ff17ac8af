#include "headrace/trace/names.h"

#include <cstring>

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
