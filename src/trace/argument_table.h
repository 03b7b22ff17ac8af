// Which arguments become columns, found by the key as it is in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::trace {

/// Maps keys to numbers. Built once, queried some ten times per event, mostly for unwanted keys.
class ArgumentTable {
 public:
  static constexpr int kUnknown = -1;

  /// Later entries of the same key are ignored.
  void add(std::string_view key, int number) {
    if (find(key) != kUnknown) return;
    if (4 * ++used_ > slots_.size()) {
      std::vector<Slot> old(2 * slots_.size());
      old.swap(slots_);
      used_ = 1;
      for (const Slot& slot : old) {
        if (slot.number != kUnknown) add(slot.key, slot.number);
      }
    }
    std::size_t at = slot_of(key);
    while (slots_[at].number != kUnknown) at = (at + 1) % slots_.size();
    slots_[at] = {std::string(key), number};
  }

  int find(std::string_view key) const noexcept {
    std::size_t at = slot_of(key);
    for (; slots_[at].number != kUnknown; at = (at + 1) % slots_.size()) {
      if (slots_[at].key == key) return slots_[at].number;
    }
    return kUnknown;
  }

 private:
  struct Slot {
    std::string key;
    int number = kUnknown;
  };

  /// Length and two bytes: keys that profilers write differ there, and no byte is read twice.
  std::size_t slot_of(std::string_view key) const noexcept {
    if (key.empty()) return 0;
    const auto first = static_cast<unsigned char>(key.front());
    const auto last = static_cast<unsigned char>(key.back());
    const auto middle = static_cast<unsigned char>(key[key.size() / 2]);
    return (key.size() * 131 + first * 31 + middle * 17 + last * 7) & (slots_.size() - 1);
  }

  std::size_t used_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(256);  // a power of two, at most a quarter full
};

}  // namespace headrace::trace
