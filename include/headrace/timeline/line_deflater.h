// Deflate for lines of which each resembles an earlier one, without looking for it: the caller knows which.
//
// A general compressor spends nine tenths of its time on finding what repeats. A timeline's writer knows: a
// slice is the line of the last slice of its row but for a few digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace headrace::timeline {

/// Bits that wait for a whole byte, and where it goes. Work with a copy, which stays in registers.
struct LineBits {
  unsigned char* out;
  std::uint64_t held = 0;
  unsigned holding = 0;

  /// Between two flushes 57 bits fit.
  void put(std::uint64_t bits, unsigned count) noexcept {
    held |= bits << holding;
    holding += count;
  }
  /// At most seven bits are held then; up to eight bytes are written at `out`.
  void flush() noexcept {
    std::memcpy(out, &held, 8);
    out += holding / 8;
    held >>= holding & ~7U;
    holding &= 7U;
  }
};

/// Writes one block of a raw deflate stream (RFC 1951) with one fixed set of Huffman codes, made for JSON
/// lines with many digits. Whatever is appended, the block decodes to it; lines that resemble nothing only
/// take more room. Not thread-safe.
class LineDeflater {
 public:
  /// How far back deflate can look.
  static constexpr std::size_t kWindow = 32768;
  /// The most bytes that one `append` takes.
  static constexpr std::size_t kMostBytes = 4096;

  LineDeflater();

  /// Begins a block; the stream stands at a byte.
  void begin_block();
  /// `bytes` of text at `text`, at most kMostBytes; eight bytes behind them must be readable. `distance`: the
  /// text that they resemble stands so many bytes before them in memory and in the stream (at most kWindow);
  /// 0: none.
  void append(const char* text, std::size_t bytes, std::size_t distance) noexcept;
  /// Ends the block. `last`: and the stream; else an empty stored block brings it to a whole byte.
  void end_block(bool last);

  /// What was written since the last `clear`; to be taken before more than kMostPending bytes wait.
  std::string_view pending() const noexcept {
    return {reinterpret_cast<const char*>(output_.data()),
            static_cast<std::size_t>(bits_.out - output_.data())};
  }
  void clear() noexcept { bits_.out = output_.data(); }
  static constexpr std::size_t kMostPending = std::size_t{64} << 10;

  /// For whoever knows the codes of its text: what it puts here must decode to the bytes that it counts. At
  /// most kMostBytes between two looks at `pending`; nothing may be appended while a copy is in use.
  LineBits& bits() noexcept { return bits_; }

 private:
  void fill_byte() noexcept;

  std::vector<unsigned char> output_;
  LineBits bits_;
};

}  // namespace headrace::timeline
