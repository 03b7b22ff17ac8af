#include "trace/json_walk.h"

#include <algorithm>

namespace headrace::trace {
namespace {

constexpr std::size_t kLongestKept = std::size_t{1} << 20;
/// Finds the end of one value.
class ValueEnd {
 public:
  /// True when the value ended before this byte.
  bool ends_before(char c) const noexcept {
    if (depth_ > 0 || in_string_) return false;
    if (c == '}' || c == ']') return true;
    return begun_ && (is_over_ || c == ',' || static_cast<unsigned char>(c) <= ' ');
  }

  void take(char c) noexcept {
    begun_ = true;
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        is_over_ = depth_ == 0;
      }
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      is_over_ = --depth_ == 0;
    }
  }

 private:
  bool begun_ = false;
  bool in_string_ = false;
  bool escaped_ = false;
  bool is_over_ = false;
  std::size_t depth_ = 0;
};

}  // namespace

std::size_t value_end(std::string_view text, std::size_t at) noexcept {
  for (ValueEnd end; at < text.size() && !end.ends_before(text[at]); ++at) end.take(text[at]);
  return at;
}

void JsonWalk::begin() {
  window_.fill();
  if (window_.text().starts_with(kByteOrderMark)) window_.drop(kByteOrderMark.size());
}

int JsonWalk::peek() {
  for (;;) {
    const std::string_view text = window_.text();
    const std::size_t blanks = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    take(blanks);
    if (blanks < text.size()) return static_cast<unsigned char>(text[blanks]);
    window_.fill();
    if (window_.text().empty()) return kEnd;
  }
}

void JsonWalk::take(std::size_t bytes) {
  if (copy_) copy_(window_.text().substr(0, bytes));
  window_.drop(bytes);
}

bool JsonWalk::take_value(std::string* kept) {
  ValueEnd end;
  std::size_t length = 0;
  if (kept != nullptr) kept->clear();
  for (;;) {
    const std::string_view text = window_.text();
    std::size_t at = 0;
    while (at < text.size() && !end.ends_before(text[at])) end.take(text[at++]);
    length += at;
    if (kept != nullptr && length <= kLongestKept) {
      kept->append(text.substr(0, at));
    } else if (kept != nullptr) {
      kept->clear();
    }
    take(at);
    if (at < text.size()) return true;
    window_.fill();
    // A word or a bracket may be the very last thing of a stream.
    if (window_.text().empty()) return end.ends_before(' ');
  }
}

}  // namespace headrace::trace
