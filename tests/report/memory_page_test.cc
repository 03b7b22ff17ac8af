#include "headrace/report/memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace headrace::report {
namespace {

bool shows(const std::string& html, const std::string& text) { return html.find(text) != std::string::npos; }

MemoryPage memory_page_of(std::vector<std::vector<double>> held_bytes) {
  std::vector<std::string> places;
  for (std::size_t i = 0; i < held_bytes.size(); ++i) places.push_back("place " + std::to_string(i));
  return {"MemorySnapshot: 1 segment",
          true,
          {"out of memory", "<b>more</b>"},
          {{"device 0", places, std::move(held_bytes), "4 GiB", "event 0", "event 9"}},
          {{"Who holds the peak", {"where", "#held"}, {{"a<b", "4 GiB"}}}},
          {"a note"}};
}

TEST(MemoryPage, PlacesLieOnEachOther) {
  // 4 is the highest sum, 220 the height: 1 of 4 is at 165, and the second place goes from there to 0.
  const std::string html = to_html(memory_page_of({{1, 2}, {3, 0}}));
  EXPECT_TRUE(shows(html, "class=\"l4\" d=\"M0 165H500V110H1000V220H500V220H0z\""));
  EXPECT_TRUE(shows(html, "class=\"v1\" d=\"M0 0H500V110H1000V110H500V165H0z\""));
  EXPECT_TRUE(shows(html, "<title>place 1</title>"));
}

TEST(MemoryPage, EverythingIsEscaped) {
  const std::string html = to_html(memory_page_of({{1}}));
  EXPECT_FALSE(shows(html, "<b>more"));
  EXPECT_TRUE(shows(html, "a&lt;b"));
  EXPECT_FALSE(shows(html, "<script"));
}

TEST(MemoryPage, NothingIsDrawnWithoutMoments) {
  EXPECT_FALSE(shows(to_html(memory_page_of({})), "<svg"));
  EXPECT_FALSE(shows(to_html(memory_page_of({{}, {1}})), "<svg"));
  EXPECT_FALSE(shows(to_html(memory_page_of({{std::numeric_limits<double>::quiet_NaN()}})), "nan"));
  EXPECT_TRUE(shows(to_html(MemoryPage{"title", false, {}, {}, {}, {}}), "title</h1>"));
}

TEST(MemoryPage, MorePlacesThanColoursAreLeftOut) {
  const std::string html = to_html(memory_page_of(std::vector<std::vector<double>>(20, {1.0})));
  EXPECT_TRUE(shows(html, "place 7"));
  EXPECT_FALSE(shows(html, "place 8"));
}

}  // namespace
}  // namespace headrace::report
