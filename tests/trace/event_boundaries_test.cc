#include "headrace/trace/event_boundaries.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace headrace::trace {
namespace {

struct Boundaries {
  std::vector<std::size_t> ends;
  std::size_t array_end = EventBoundaries::npos;
};

/// The same, byte by byte.
Boundaries one_by_one(std::string_view text) {
  Boundaries expected;
  bool in_string = false;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      continue;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0 && c == ']') {
        expected.array_end = at;
        return expected;
      }
      if (depth > 0 && --depth == 0) expected.ends.push_back(at + 1);
    }
  }
  return expected;
}

/// Characters that matter, as they come in JSON or as they do not. What lies behind a backslash is never a
/// bracket: outside strings no two scanners agree on that.
std::string random_text(std::mt19937& random, std::size_t length) {
  static const std::vector<std::string> kParts = {"{",    "}",   "[",    "]",     "\"",   "\\\\",
                                                  "\\\"", "\\n", "name", "\"a\"", ": 12", "\"}{][\"",
                                                  "{ }",  ",",   " ",    "\\\\\""};
  std::string text;
  while (text.size() < length) text += kParts[random() % kParts.size()];
  return text;
}

TEST(EventBoundaries, AgreeWithAByteByByteScanOfAnyText) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, 1 + random() % 400);
    const Boundaries expected = one_by_one(text);
    EventBoundaries boundaries;
    const EventBoundaries::Found found = boundaries.scan(text);
    EXPECT_EQ(found.events, expected.ends.size()) << text;
    EXPECT_EQ(found.after_last, expected.ends.empty() ? EventBoundaries::npos : expected.ends.back()) << text;
    EXPECT_EQ(found.array_end, expected.array_end) << text;
  }
}

TEST(EventBoundaries, DoNotDependOnWhereTheTextIsCut) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = random_text(random, 1 + random() % 400);
    const Boundaries expected = one_by_one(text);
    EventBoundaries boundaries;
    std::vector<std::size_t> ends;
    std::size_t array_end = EventBoundaries::npos;
    for (std::size_t at = 0; at < text.size() && array_end == EventBoundaries::npos;) {
      const std::string_view piece = std::string_view(text).substr(at, 1 + random() % 150);
      // One at a time: the scan goes on where the last event ended.
      const EventBoundaries::Found found = boundaries.scan(piece, 1);
      if (found.array_end != EventBoundaries::npos) array_end = at + found.array_end;
      if (found.after_last != EventBoundaries::npos) ends.push_back(at + found.after_last);
      at += found.after_last != EventBoundaries::npos ? found.after_last : piece.size();
    }
    EXPECT_EQ(ends, expected.ends) << text;
    EXPECT_EQ(array_end, expected.array_end) << text;
  }
}

TEST(EventBoundaries, ReadOneEventAmongManyBlocks) {
  const std::string filling(1000, 'x');
  const std::string event = R"({"name": ")" + filling + R"(", "args": {"list": [[1, 2], []]}})";
  EventBoundaries boundaries;
  const EventBoundaries::Found found = boundaries.scan(event + ", " + event + "] behind it {}");
  EXPECT_EQ(found.events, 2U);
  EXPECT_EQ(found.after_last, 2 * event.size() + 2);
  EXPECT_EQ(found.array_end, 2 * event.size() + 2);
}

}  // namespace
}  // namespace headrace::trace
