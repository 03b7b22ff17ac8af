// A part of a stream that is looked at while it moves along it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/trace/byte_source.h"

namespace headrace::trace {

/// Optional prefix of a file's text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The next bytes of a source, contiguous. The byte before the text and at least `kSlack` behind it may be
/// read and written: the parser puts brackets there.
class ByteWindow {
 public:
  static constexpr std::size_t kSlack = 128;

  ByteWindow(ByteSource& source, std::size_t capacity)
      : source_(source), buffer_(std::max<std::size_t>(capacity, 1) + 2 * kSlack) {}

  char* data() noexcept { return buffer_.data() + begin_; }
  std::string_view text() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
  /// Position of the text in the stream.
  std::uint64_t offset() const noexcept { return offset_; }

  /// Reads until the window is full or the source has ended. Moves the text.
  void fill() {
    if (ended_) return;
    const std::size_t left = end_ - begin_;
    if (begin_ != kSlack && left > 0) std::memmove(buffer_.data() + kSlack, buffer_.data() + begin_, left);
    begin_ = kSlack;
    end_ = kSlack + left;
    const std::size_t limit = buffer_.size() - kSlack;
    while (end_ < limit) {
      const std::size_t bytes = source_.read(std::span(buffer_).subspan(end_, limit - end_));
      if (bytes == 0) {
        ended_ = true;
        return;
      }
      end_ += bytes;
    }
  }
  /// True when the source has no more than what is in the window.
  bool ended() const noexcept { return ended_; }
  /// Takes `bytes` off the front.
  void drop(std::size_t bytes) noexcept {
    begin_ += bytes;
    offset_ += bytes;
  }

  std::size_t capacity() const noexcept { return buffer_.size() - 2 * kSlack; }
  /// Makes room for twice as much, but for no more than `most`.
  void grow(std::size_t most) {
    buffer_.resize(std::max(capacity(), std::min(2 * capacity(), most)) + 2 * kSlack);
  }

 private:
  ByteSource& source_;
  std::vector<char> buffer_;
  std::size_t begin_ = kSlack;
  std::size_t end_ = kSlack;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace headrace::trace
