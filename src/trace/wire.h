// Protocol buffers' wire format, field by field, over bytes that nobody here wrote.
#pragma once

#include <cstdint>
#include <string_view>

namespace headrace::trace {

/// The fields of one message. Reads nothing outside of its bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) noexcept : rest_(bytes) {}

  /// Goes to the next field; false behind the last one, and where the bytes are no field (`damaged`).
  bool next() noexcept;

  int number() const noexcept { return number_; }
  bool is_number() const noexcept { return !is_bytes_; }
  /// The value of a number, its bits if it has a fixed width; 0 for bytes.
  std::uint64_t bits() const noexcept { return bits_; }
  std::int64_t integer() const noexcept { return static_cast<std::int64_t>(bits_); }
  double real() const noexcept;
  /// A text, bytes or a message; empty for a number.
  std::string_view bytes() const noexcept { return bytes_; }

  /// The message ends inside a field, or has a field that is none.
  bool damaged() const noexcept { return damaged_; }
  /// The part not read yet.
  std::string_view rest() const noexcept { return rest_; }

 private:
  bool varint(std::uint64_t& value) noexcept;
  bool fixed(int size) noexcept;
  bool fail() noexcept;

  std::string_view rest_;
  int number_ = 0;
  bool is_bytes_ = false;
  std::uint64_t bits_ = 0;
  std::string_view bytes_;
  bool damaged_ = false;
};

/// The message that is the first field of `text`, as far as it is there.
struct FirstMessage {
  std::string_view bytes;
  bool is_whole = false;
};
FirstMessage first_message(std::string_view text) noexcept;

/// The number of the first field, 0 if there is none.
int first_key(std::string_view message) noexcept;

}  // namespace headrace::trace
