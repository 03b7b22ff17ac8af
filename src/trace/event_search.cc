#include "trace/event_search.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace headrace::trace {
namespace {

constexpr std::array<std::string_view, 10> kEventKeys = {"ph", "name", "cat", "pid",  "tid",
                                                         "ts", "dur",  "id",  "args", "s"};

/// An event is rarely longer; where one is, EventBoundaries finds its end.
constexpr std::size_t kLookBack = std::size_t{64} << 10;

bool is_json_blank(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// True when `text[brace]` is the brace in `}, {"name":`.
bool begins_event(std::string_view text, std::size_t brace) noexcept {
  std::size_t before = brace;
  while (before > 0 && is_json_blank(text[before - 1])) --before;
  if (before == 0 || text[before - 1] != ',') return false;
  --before;
  while (before > 0 && is_json_blank(text[before - 1])) --before;
  if (before == 0 || text[before - 1] != '}') return false;

  std::size_t at = brace + 1;
  while (at < text.size() && is_json_blank(text[at])) ++at;
  if (at == text.size() || text[at] != '"') return false;
  const std::string_view rest = text.substr(at + 1);
  for (const std::string_view key : kEventKeys) {
    if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != '"') continue;
    std::size_t colon = key.size() + 1;
    while (colon < rest.size() && is_json_blank(rest[colon])) ++colon;
    return colon < rest.size() && rest[colon] == ':';
  }
  return false;
}

}  // namespace

std::size_t last_event_end(std::string_view text) noexcept {
  const std::string_view end = text.substr(text.size() - std::min(text.size(), kLookBack));
  for (std::size_t brace = end.rfind('{'); brace != std::string_view::npos && brace > 0;
       brace = end.rfind('{', brace - 1)) {
    if (begins_event(end, brace)) return text.size() - end.size() + end.rfind('}', brace) + 1;
  }
  return std::string_view::npos;
}

EventSpan find_event(std::string_view text, std::size_t from) {
  std::size_t begin = from;
  while (begin < text.size() && (is_json_blank(text[begin]) || text[begin] == ',')) ++begin;
  if (begin == text.size()) return {EventSpan::Kind::incomplete, begin, begin};
  if (text[begin] == ']') return {EventSpan::Kind::array_end, begin, begin};

  std::vector<char> open;  // the brackets around this byte, outermost first
  bool in_string = false;
  bool mismatched = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' && at > begin) {
      const bool impossible = in_string || mismatched || (!open.empty() && open.back() == '{');
      if (impossible && begins_event(text, at)) return {EventSpan::Kind::damaged, begin, at};
    }
    if (c == '\\') {
      ++at;  // whatever comes next is no quote
    } else if (c == '"') {
      in_string = !in_string;
      if (!in_string && open.empty()) return {EventSpan::Kind::complete, begin, at + 1};
    } else if (in_string) {
      continue;
    } else if (c == '{' || c == '[') {
      // A bare word ends where an object begins; a comma is missing between them.
      if (open.empty() && at > begin) return {EventSpan::Kind::complete, begin, at};
      open.push_back(c);
    } else if (c == '}' || c == ']') {
      if (open.empty()) return {EventSpan::Kind::complete, begin, at == begin ? at + 1 : at};
      mismatched |= (open.back() == '{') != (c == '}');
      open.pop_back();
      if (open.empty()) return {EventSpan::Kind::complete, begin, at + 1};
    } else if (c == ',' && open.empty()) {
      return {EventSpan::Kind::complete, begin, at};
    }
  }
  return {EventSpan::Kind::incomplete, begin, text.size()};
}

bool repair_texts(char* text, std::size_t length) {
  bool changed = false;
  for (char& c : std::span(text, length)) {
    if (static_cast<unsigned char>(c) >= ' ') continue;
    c = ' ';
    changed = true;
  }
  if (simdjson::validate_utf8(text, length)) return changed;
  for (char& c : std::span(text, length)) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return true;
}

}  // namespace headrace::trace
