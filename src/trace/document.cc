#include "trace/document.h"

#include <cstddef>

#include "headrace/profile/errors.h"

namespace headrace::trace {
namespace {

constexpr std::size_t kLongestValue = std::size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr const char* kExpected = "an object with \"traceEvents\", or an array of events";

/// Goes over one JSON value byte by byte.
class ValueEnd {
 public:
  /// True when the value ended before this byte.
  bool ends_before(char c) const noexcept {
    if (depth_ > 0 || in_string_ || !begun_) return false;
    return is_over_ || c == ',' || c == '}' || c == ']' || static_cast<unsigned char>(c) <= ' ';
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

int Document::peek() {
  for (;;) {
    const std::string_view text = window_.text();
    const std::size_t at = text.find_first_not_of(" \t\r\n");
    if (at != std::string_view::npos) {
      window_.drop(at);
      return static_cast<unsigned char>(text[at]);
    }
    window_.drop(text.size());
    window_.fill();
    if (window_.text().empty()) return kEnd;
  }
}

void Document::read() {
  window_.fill();
  if (window_.text().starts_with(kByteOrderMark)) window_.drop(kByteOrderMark.size());
  const int first = peek();
  if (first == '[') {
    window_.drop(1);
    events_.read();
    return;
  }
  if (first == kEnd) throw FormatError(name_, window_.offset(), "a trace, but there is nothing in it");
  if (first != '{') throw FormatError(name_, window_.offset(), kExpected);
  window_.drop(1);
  read_object();
  if (!found_events_) throw FormatError(name_, window_.offset(), kExpected);
}

void Document::read_object() {
  std::string key;
  std::string value;
  for (;;) {
    int next = peek();
    if (next == kEnd) return cut_off("inside the top-level object");
    if (next == '}') return window_.drop(1);
    if (next != '"') {  // a comma; anything else is passed over too, a later key may be in order
      window_.drop(1);
      continue;
    }
    if (!take_value(key)) return cut_off("inside a key");
    next = peek();
    if (next == kEnd) return cut_off("behind a key");
    if (next != ':') continue;
    window_.drop(1);
    next = peek();
    if (key == "\"traceEvents\"" && next == '[') {
      found_events_ = true;
      window_.drop(1);
      if (!events_.read()) return;
      continue;
    }
    if (next == ',' || next == '}' || next == ']') continue;  // a value is missing
    if (next == kEnd || !take_value(value)) return cut_off("inside the value of " + key);
    if (!value.empty() && key.size() >= 2) metadata.emplace_back(key.substr(1, key.size() - 2), value);
  }
}

bool Document::take_value(std::string& kept) {
  kept.clear();
  ValueEnd end;
  bool too_long = false;
  for (;;) {
    const std::string_view text = window_.text();
    std::size_t at = 0;
    while (at < text.size() && !end.ends_before(text[at])) end.take(text[at++]);
    too_long |= kept.size() + at > kLongestValue;
    if (too_long) {
      kept.clear();
    } else {
      kept.append(text.substr(0, at));
    }
    window_.drop(at);
    if (at < text.size()) return true;
    window_.fill();
    // A word or a bracket may be the very last thing of a stream.
    if (window_.text().empty()) return end.ends_before(' ');
  }
}

void Document::cut_off(std::string_view where) {
  notes_.cut = true;
  notes_.cut_where = where;
  notes_.cut_offset = window_.offset();
}

}  // namespace headrace::trace
