#include "trace/wire.h"

#include <bit>
#include <cstddef>

namespace headrace::trace {
namespace {

enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };
constexpr int kTypeBits = 3;

}  // namespace

bool Fields::fail() noexcept {
  damaged_ = true;
  rest_ = {};
  return false;
}

bool Fields::varint(std::uint64_t& value) noexcept {
  constexpr std::size_t kLongest = 10;
  constexpr int kBits = 7;
  constexpr unsigned char kMore = 0x80;
  value = 0;
  for (std::size_t i = 0; i < kLongest && i < rest_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= static_cast<std::uint64_t>(byte & (kMore - 1U)) << (kBits * i);
    if ((byte & kMore) == 0) {
      rest_.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

bool Fields::fixed(int size) noexcept {
  const auto bytes = static_cast<std::size_t>(size);
  if (rest_.size() < bytes) return false;
  bits_ = 0;
  constexpr int kByteBits = 8;
  for (std::size_t i = 0; i < bytes; ++i)
    bits_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (kByteBits * i);
  rest_.remove_prefix(bytes);
  return true;
}

bool Fields::next() noexcept {
  if (rest_.empty()) return false;
  std::uint64_t key = 0;
  if (!varint(key)) return fail();
  constexpr std::uint64_t kHighestNumber = (std::uint64_t{1} << 29) - 1;
  const std::uint64_t number = key >> kTypeBits;
  if (number == 0 || number > kHighestNumber) return fail();
  number_ = static_cast<int>(number);
  bits_ = 0;
  bytes_ = {};
  is_bytes_ = false;
  switch (key & ((1U << kTypeBits) - 1)) {
    case kVarint:
      return varint(bits_) || fail();
    case kFixed64:
      return fixed(sizeof(std::uint64_t)) || fail();
    case kFixed32:
      return fixed(sizeof(std::uint32_t)) || fail();
    case kLengthDelimited: {
      std::uint64_t length = 0;
      if (!varint(length) || length > rest_.size()) return fail();
      is_bytes_ = true;
      bytes_ = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
    default:
      return fail();
  }
}

double Fields::real() const noexcept { return std::bit_cast<double>(bits_); }

FirstMessage first_message(std::string_view text) noexcept {
  Fields whole(text);
  if (whole.next()) return {whole.bytes(), true};
  // Behind its key and its length.
  constexpr unsigned char kMore = 0x80;
  std::size_t at = 1;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & kMore) != 0) ++at;
  return {at + 1 < text.size() ? text.substr(at + 1) : std::string_view(), false};
}

int first_key(std::string_view message) noexcept {
  Fields fields(message);
  fields.next();
  return fields.number();
}

}  // namespace headrace::trace
