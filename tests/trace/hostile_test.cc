// Files that are cut, damaged or no JSON at all: what can be read is read, the rest is counted.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/errors.h"
#include "trace/read_text.h"
#include "trace/stored_gzip.h"

namespace headrace::trace {
namespace {

std::string event(const std::string& name, const std::string& more = "") {
  return R"({"ph": "X", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": 10, "dur": 2)" + more + "}";
}

std::vector<std::string> names_of(const TraceFile& file) {
  std::vector<std::string> names;
  for (Row row = 0; row < file.columns.size(); ++row) names.emplace_back(file.columns.name_of(row));
  return names;
}

using RowNames = std::vector<std::string>;

struct Case {
  const char* what;
  /// Stands between two sound events, with a comma on either side.
  std::string text;
  /// What of it becomes rows.
  RowNames rows;
  /// What is counted, once.
  ReadProblem problem;
};

std::vector<Case> cases() {
  return {
      {"a number", "17", {}, ReadProblem::not_an_object},
      {"a string", R"("},{\"ph\":")", {}, ReadProblem::not_an_object},
      {"an array", "[[{}]]", {}, ReadProblem::not_an_object},
      {"null", "null", {}, ReadProblem::not_an_object},
      {"no phase", R"({"ts": 1, "dur": 1})", {}, ReadProblem::no_phase},
      {"no time stamp", R"({"ph": "X", "dur": 1})", {}, ReadProblem::no_time_stamp},
      {"a time stamp that is NaN", R"({"ph": "X", "ts": NaN, "dur": 1})", {}, ReadProblem::no_time_stamp},
      {"a time stamp that is N/A", R"({"ph": "X", "ts": N/A, "dur": 1})", {}, ReadProblem::no_time_stamp},
      {"no duration", R"({"ph": "X", "ts": 1})", {}, ReadProblem::no_duration},
      {"a negative duration", R"({"ph": "X", "ts": 1, "dur": -0.001})", {}, ReadProblem::negative_duration},
      {"a time beyond int64",
       R"({"ph": "i", "ts": 9223372036854775807})",
       {},
       ReadProblem::time_out_of_range},
      {"an end beyond int64", R"({"ph": "X", "ts": 9e15, "dur": 9e15})", {}, ReadProblem::time_out_of_range},
      {"a time of the year 2100", R"({"ph": "i", "ts": 4.1e15})", {}, ReadProblem::time_out_of_range},
      {"half a year", R"({"ph": "X", "ts": 1, "dur": 1.6e13})", {}, ReadProblem::time_out_of_range},
      {"NaN in an argument",
       event("a", R"(, "args": {"bytes": NaN, "stream": 3})"),
       {"a"},
       ReadProblem::not_a_number},
      {"-Infinity",
       event("a", R"x(, "args": {"memory bandwidth (GB/s)": -Infinity})x"),
       {"a"},
       ReadProblem::not_a_number},
      {"bare N/A", event("a", R"(, "args": {"device": N/A, "stream": 3})"), {"a"}, ReadProblem::not_a_number},
      {"a huge integer",
       event("a", R"(, "args": {"bytes": 123456789012345678901234567890})"),
       {"a"},
       ReadProblem::number_out_of_range},
      {"a huge number",
       event("a", R"(, "args": {"blocks per SM": 1e999})"),
       {"a"},
       ReadProblem::number_out_of_range},
      {"a bad escape", event("C:\\path"), {"C:\\path"}, ReadProblem::bad_escape},
      {"a lone surrogate", event("\\ud800"), {"\\ud800"}, ReadProblem::bad_escape},
      {"a line break in a name", event("two\nlines"), {"two lines"}, ReadProblem::repaired},
      {"invalid UTF-8", event("caf\xe9"), {"caf?"}, ReadProblem::repaired},
      {"a trailing comma in an object", R"({"ph": "i", "ts": 1,})", {}, ReadProblem::unreadable},
      {"a missing colon", R"({"ph" "i", "ts": 1})", {}, ReadProblem::unreadable},
      {"single quotes", "{'ph': 'i', 'ts': 1}", {}, ReadProblem::unreadable},
      {"two words", R"({"ph": "i", "ts": not valid})", {}, ReadProblem::unreadable},
      {"a quote too many", event("a\"b"), {}, ReadProblem::unreadable},
      {"a backslash that swallows the quote", event("C:\\"), {}, ReadProblem::unreadable},
      {"a brace too few", R"({"ph": "i", "ts": 1, "args": {"a": 1})", {}, ReadProblem::unreadable},
      {"a bracket that is never closed",
       event("a", R"(, "args": {"Input Dims": [1, 2})"),
       {},
       ReadProblem::unreadable},
  };
}

TEST(HostileTrace, OneBadEventCostsItselfAndNoOther) {
  for (const Case& c : cases()) {
    for (const std::size_t window : {std::size_t{64}, std::size_t{300}, std::size_t{1} << 20}) {
      ReadOptions options;
      options.window_bytes = window;
      const std::string text = "{\"traceEvents\": [" + event("before") + ",\n" + c.text + ",\n" +
                               event("after") + "," + event("last") + "], \"traceName\": 1}";
      const TraceFile file = read_text(text, options);
      RowNames expected = {"before"};
      expected.insert(expected.end(), c.rows.begin(), c.rows.end());
      expected.insert(expected.end(), {"after", "last"});
      EXPECT_EQ(names_of(file), expected) << c.what << ", window " << window;
      EXPECT_EQ(file.columns.position.back(), 3U) << c.what;
      EXPECT_FALSE(file.notes.cut) << c.what;
      EXPECT_EQ(file.metadata.size(), 1U) << c.what;
      EXPECT_EQ(file.notes.sentences().size(), 1U) << c.what;
      EXPECT_EQ(file.notes.of(c.problem).count, 1U) << c.what;
      EXPECT_EQ(file.notes.of(c.problem).first_offset, text.find(c.text)) << c.what;
      EXPECT_EQ(file.notes.skipped(), c.rows.empty() ? 1U : 0U) << c.what;
    }
  }
}

TEST(HostileTrace, AMissingOrASpareCommaCostsNothing) {
  const std::string a = event("a"), b = event("b"), c = event("c");
  EXPECT_EQ(names_of(read_text("[" + a + " " + b + "," + c + "]")), (RowNames{"a", "b", "c"}));
  EXPECT_EQ(names_of(read_text("[" + a + ",," + b + "," + c + "]")), (RowNames{"a", "b", "c"}));
  EXPECT_EQ(names_of(read_text("[" + a + "," + b + "," + c + ",]")), (RowNames{"a", "b", "c"}));
}

TEST(HostileTrace, DeepNestingIsPassedOver) {
  for (const char* key : {"unknown", "Input Dims", "bytes"}) {
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    const std::string text =
        event("a", ", \"args\": {\"" + std::string(key) + "\": " + deep + ", \"stream\": 3}");
    const TraceFile file = read_text("[" + text + "," + event("b") + "]");
    EXPECT_EQ(names_of(file), (RowNames{"a", "b"})) << key;
    EXPECT_EQ(file.columns.stream[0], 3) << key;
  }
}

TEST(HostileTrace, OtherFieldsOfAnEventWithABadOneSurvive) {
  const TraceFile file =
      read_text("[" + event("a", R"(, "args": {"bytes": N/A, "stream": 3, "device": 1})") + "]");
  EXPECT_EQ(file.columns.stream, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(file.columns.argument("device")->integers, (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(file.columns.argument("bytes")->rows.empty());
}

TEST(HostileTrace, ACutFileGivesAllEventsBeforeTheCut) {
  const std::string a = event("a"), b = event("b");
  const std::string whole = "{\"rank\": 1, \"traceEvents\": [" + a + ", " + b + "], \"traceName\": \"x\"}";
  const std::size_t array = whole.find('[') + 1;
  for (std::size_t left = array; left < whole.size(); ++left) {
    const TraceFile file = read_text(whole.substr(0, left));
    const std::size_t complete = (left >= array + a.size()) + (left >= array + a.size() + 2 + b.size());
    EXPECT_EQ(file.columns.size(), complete) << left;
    EXPECT_TRUE(file.notes.cut) << left;
    EXPECT_EQ(file.notes.cut_offset, left);
    EXPECT_EQ(file.notes.skipped(), 0U) << left;
    EXPECT_EQ(file.notes.sentences().size(), 1U) << left;
  }
  EXPECT_EQ(read_text(whole.substr(0, array + 20)).notes.cut_where, "inside an event");
  EXPECT_EQ(read_text(whole.substr(0, array + a.size() + 2)).notes.cut_where, "between two events");
}

TEST(HostileTrace, ACutGzipIsReadUpToTheCut) {
  std::string text = "[";
  for (int i = 0; i < 5000; ++i) text += (i == 0 ? "" : ",\n") + event("event " + std::to_string(i));
  const std::string gzip = stored_gzip(text + "]");
  const TraceFile file = read_text(gzip.substr(0, gzip.size() / 2));
  EXPECT_NEAR(static_cast<double>(file.columns.size()), 2500, 10);
  EXPECT_EQ(file.columns.name_of(2000), "event 2000");
  EXPECT_TRUE(file.notes.cut);
  EXPECT_NE(file.notes.damage.find("too early"), std::string::npos);
  EXPECT_EQ(read_text(gzip).columns.size(), 5000U);
}

TEST(HostileTrace, AnEventLongerThanTheWindowIsReadOneLongerThanTheLimitIsSkipped) {
  const std::string long_event =
      event("long", R"(, "args": {"Call stack": ")" + std::string(5000, 'x') + "\"}");
  const std::string text = "[" + event("before") + "," + long_event + "," + event("after") + "]";
  ReadOptions options;
  options.window_bytes = 100;
  EXPECT_EQ(names_of(read_text(text, options)), (RowNames{"before", "long", "after"}));

  options.longest_event_bytes = 4000;
  const TraceFile limited = read_text(text, options);
  EXPECT_EQ(names_of(limited), (RowNames{"before", "after"}));
  EXPECT_EQ(limited.notes.of(ReadProblem::too_long).count, 1U);
  EXPECT_EQ(limited.notes.of(ReadProblem::too_long).first_offset, text.find(long_event));
  EXPECT_EQ(limited.columns.position, (std::vector<std::uint32_t>{0, 2}));

  const TraceFile cut = read_text(text.substr(0, 4900), options);
  EXPECT_EQ(names_of(cut), (RowNames{"before"}));
  EXPECT_TRUE(cut.notes.cut);
}

TEST(HostileTrace, ManyBadEventsAmongGoodOnes) {
  std::string text = "[";
  RowNames expected;
  std::size_t bad = 0;
  const std::vector<Case> kinds = cases();
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "event " + std::to_string(i);
    text += event(name) + ",\n";
    expected.push_back(name);
    if (i % 7 != 0) continue;
    const Case& c = kinds[static_cast<std::size_t>(i) % kinds.size()];
    text += c.text + ",\n";
    expected.insert(expected.end(), c.rows.begin(), c.rows.end());
    bad += c.rows.empty();
  }
  text += event("end") + "]";
  expected.emplace_back("end");
  for (const std::size_t window : {1000, 1 << 20}) {
    ReadOptions options;
    options.window_bytes = window;
    const TraceFile file = read_text(text, options);
    EXPECT_EQ(names_of(file), expected) << window;
    EXPECT_EQ(file.notes.skipped(), bad) << window;
    EXPECT_FALSE(file.notes.cut);
  }
}

TEST(HostileTrace, AnEmptyObjectIsNothing) {
  const TraceFile file = read_text("[" + event("a") + ", {}, " + event("b") + ", {}]");
  EXPECT_EQ(names_of(file), (RowNames{"a", "b"}));
  EXPECT_TRUE(file.notes.clean());
}

TEST(HostileTrace, NestedObjectsThatLookLikeEventsAreArguments) {
  const std::string nested =
      event("outer", R"(, "args": {"list": [{"a": 1}, {"name": "inner", "ph": "X"}]})");
  // The damaged one makes the careful search look at its neighbours too.
  const std::string text = "[" + event("a\"b") + "," + nested + "," + event("after") + "]";
  EXPECT_EQ(names_of(read_text(text)), (RowNames{"outer", "after"}));
}

TEST(HostileTrace, DisorderAroundTheEventsDoesNotHideThem) {
  const std::string a = "[" + event("a") + "]";
  EXPECT_EQ(names_of(read_text("{\"x\": , \"traceEvents\": " + a + "}")), (RowNames{"a"}));
  EXPECT_EQ(names_of(read_text("{\"x\" 1, \"traceEvents\": " + a + "}")), (RowNames{"a"}));
  EXPECT_EQ(names_of(read_text("{\"x\": \"]}\\\"\", \"traceEvents\": " + a + ", }")), (RowNames{"a"}));
  EXPECT_EQ(names_of(read_text("{\"traceEvents\": " + a +
                               ", \"y\": {\"traceEvents\": []}, \"traceEvents\": " + a + "}")),
            (RowNames{"a", "a"}));
  const TraceFile long_value =
      read_text("{\"x\": \"" + std::string(2 << 20, 'x') + "\", \"traceEvents\": " + a + "}");
  EXPECT_EQ(names_of(long_value), (RowNames{"a"}));
  EXPECT_TRUE(long_value.metadata.empty());
}

TEST(HostileTrace, SaysWhatItSkippedInWords) {
  const std::string bad = R"({"ph": "X", "ts": 1, "dur": -1})";
  const TraceFile file = read_text("[" + bad + "," + bad + "," + event("a", R"(, "args": {"bytes": NaN})"));
  EXPECT_EQ(file.notes.sentences(),
            (std::vector<std::string>{
                "the file ends between two events at byte " + std::to_string(file.notes.bytes),
                "2 events skipped: negative duration (first at byte 1)",
                "1 field: not a number (first at byte " + std::to_string(3 + 2 * bad.size()) + ")"}));
}

}  // namespace
}  // namespace headrace::trace
