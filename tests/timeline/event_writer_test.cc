#include "headrace/timeline/event_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "profile/scratch_folder.h"
#include "timeline/read_back.h"

namespace headrace::timeline {
namespace {

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

/// The same events as plain text and compressed.
class EventWriterTest : public ::testing::Test {
 protected:
  template <typename Write>
  std::string expect_same_text(const Write& write) {
    for (const char* name : {"events.json", "events.json.gz"}) {
      GzipWriter out(folder_ / name);
      out.write("[");
      EventWriter events(out, kBase, true);
      write(events);
      out.write("]");
      out.finish();
    }
    std::string plain = read_back(folder_ / "events.json");
    EXPECT_TRUE(read_back(folder_ / "events.json.gz") == plain);
    return plain;
  }
  profile::ScratchFolder folder_;
};

TEST_F(EventWriterTest, SliceSaysWhenInMicroseconds) {
  const std::string text = expect_same_text([](EventWriter& events) {
    auto name = events.slice_name({7, 3}, "de\"code");
    events.slice(name, kBase + 2'000'000'001, kBase + 2'000'000'001);
    events.slice(name, kBase + 2'000'001'001, kBase + 2'012'345'678);
    events.slice(name, kBase + 2'100'000'000, kBase + 3'100'000'000, "\"batch\":4");
    events.slice(name, kBase - 1'500, kBase);
  });
  const auto events = nlohmann::json::parse(text);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["name"], "de\"code");
  EXPECT_EQ(events[0]["ts"], 2'000'000.001);
  EXPECT_EQ(events[0]["dur"], 0.0);
  EXPECT_EQ(events[1]["ts"], 2'000'001.001);
  EXPECT_EQ(events[1]["dur"], 12'344.677);
  EXPECT_EQ(events[2]["dur"], 1e6);
  EXPECT_EQ(events[2]["args"]["batch"], 4);
  EXPECT_EQ(events[3]["ts"], -1.5);
}

TEST_F(EventWriterTest, CompressedTextIsThePlainOneWhateverTheSlicesAre) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    expect_same_text([seed](EventWriter& events) {
      std::mt19937_64 random(seed);
      const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most); };
      std::vector<EventWriter::Prepared> names;
      std::int64_t pid = 1;
      for (const std::size_t length : {1, 30, 170, 190, 300, 5000})
        names.push_back(events.slice_name({pid *= 10, below(100)}, std::string(length, 'n')));
      auto counter = events.counter_name(5, "decoded");
      std::int64_t now = kBase;
      for (int i = 0; i < 3000; ++i) {
        constexpr std::uint64_t kUpTo[] = {1000, 1'000'000, 300'000'000, 20'000'000'000};
        now += below(kUpTo[i / 10 % 4]) - below(seed % 4 == 0 ? 2'000'000 : 1);
        auto& name = names[static_cast<std::size_t>(below(i % 50 < 40 ? 2 : names.size()))];
        const std::int64_t lasts = below(kUpTo[below(4)]);
        if (below(100) == 0) {
          events.counter(counter, now, static_cast<double>(below(1000)) / 8);
        } else if (below(100) == 0) {
          events.flow("stf" [below(3)], Row { 5, 1 }, random(), now);
        } else {
          events.slice(name, now, now + lasts, below(5) == 0 ? "\"batch\":" + std::to_string(i) : "");
        }
      }
    });
  }
}

}  // namespace
}  // namespace headrace::timeline
