// Walks over JSON byte by byte, one value at a time: what stands before, between and behind a trace's events.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "trace/byte_window.h"

namespace headrace::trace {

/// End of the value that begins at `text[at]`; the end of the text if it has none.
std::size_t value_end(std::string_view text, std::size_t at) noexcept;

class JsonWalk {
 public:
  static constexpr int kEnd = -1;
  using Copy = std::function<void(std::string_view taken)>;

  /// `copy` gets every byte that is taken off the window.
  explicit JsonWalk(ByteWindow& window, Copy copy = {}) : window_(window), copy_(std::move(copy)) {}

  /// Fills the window and drops a byte order mark.
  void begin();
  /// The next byte that is not blank, left in the window; kEnd at the end of the stream.
  int peek();
  void take(std::size_t bytes);
  /// Takes a string, an object, an array or a word. False when the stream ends inside it. `kept` gets its
  /// text, or nothing if that is longer than 1 MiB.
  bool take_value(std::string* kept = nullptr);

 private:
  ByteWindow& window_;
  Copy copy_;
};

}  // namespace headrace::trace
