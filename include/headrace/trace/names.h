// Texts that are stored once and named by a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::trace {

/// Interned texts: equal texts have equal numbers, and the numbers are 0, 1, 2... in the order of first use.
///
/// The texts lie behind each other in one block with an array of offsets, which is how Arrow lays out a
/// dictionary, so they can be handed on without a copy. Number 0 is the empty text. One writer at a time.
class Names {
 public:
  using Id = std::uint32_t;

  Names();

  Id intern(std::string_view text);

  /// The text of `id`; valid until the next `intern`.
  std::string_view operator[](Id id) const noexcept {
    return {texts_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]};
  }

  /// The number of `text`, or `missing` if it is unused.
  static constexpr Id missing = ~Id{0};
  Id find(std::string_view text) const noexcept;

  std::size_t size() const noexcept { return offsets_.size() - 1; }
  /// `size() + 1` offsets into `texts()`.
  const std::vector<std::uint64_t>& offsets() const noexcept { return offsets_; }
  const std::string& texts() const noexcept { return texts_; }

  /// Bytes of memory in use.
  std::size_t bytes() const noexcept;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    Id id = missing;
  };

  Id intern_new_or_old(std::string_view text);
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const noexcept;
  void grow();

  std::string texts_;
  std::vector<std::uint64_t> offsets_{0};
  /// The last requested text of each `glance_at`: nearly always the one that is
  /// requested next, and found without going through all of a text that is hundreds of bytes long.
  std::array<Id, 1024> recent_{};
  std::vector<Slot> slots_;  // open addressing, a power of two of them, at most half full
};

}  // namespace headrace::trace
