#include "trace/byte_window.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace headrace::trace {

ByteWindow::ByteWindow(ByteSource& source, std::size_t capacity)
    : source_(source), buffer_(std::max<std::size_t>(capacity, 1) + 2 * kSlack) {}

void ByteWindow::fill() {
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

void ByteWindow::grow(std::size_t most) {
  buffer_.resize(std::max(capacity(), std::min(2 * capacity(), most)) + 2 * kSlack);
}

}  // namespace headrace::trace
