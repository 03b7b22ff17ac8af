#include "headrace/trace/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/profile/errors.h"
#include "trace/read_text.h"
#include "trace/stored_gzip.h"

namespace headrace::trace {
namespace {

/// An operator, its launch, its kernel, as Kineto writes them.
constexpr std::string_view kKineto = R"json({
  "schemaVersion": 1,
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 17, "tid": 18,
    "ts": 1661203462584767.125, "dur": 30.001,
    "args": {"External id": 5, "Input Dims": [[2, 3], []], "Call stack": "a;b"}
  },
  {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 17, "tid": 18,
    "ts": 1661203462584770, "dur": 4,
    "args": {"cbid": 211, "correlation": 9, "External id": 5}
  },
  {
    "ph": "s", "id": 9, "pid": 17, "tid": 18, "ts": 1661203462584770, "cat": "ac2g", "name": "ac2g"
  },
  {
    "ph": "X", "cat": "kernel", "name": "void gemm<float>(int)", "pid": 0, "tid": "stream 7",
    "ts": 1661203462584790, "dur": 12.5,
    "args": {"External id": 5, "device": 0, "stream": 7, "correlation": 9, "blocks per SM": 0.5,
      "grid": [1, 1, 1]}
  },
  {
    "name": "process_name", "ph": "M", "ts": 1661203462584767, "pid": 17, "tid": 0, "args": {"name": "python"}
  },
  {
    "name": "thread_name", "ph": "M", "ts": 0, "pid": 17, "tid": 18, "args": {"name": "thread 18 (python)"}
  },
  {
    "args": {"labels": "GPU 0"}, "name": "process_labels", "ph": "M", "ts": 0, "pid": 0, "tid": 0
  }
  ],
  "traceName": "worker0.json",
  "baseTimeNanoseconds": 1500
})json";

TEST(Reader, TurnsEventsIntoColumns) {
  const TraceFile file = read_text(kKineto);
  const Columns& columns = file.columns;
  EXPECT_TRUE(file.notes.clean()) << file.notes.sentences()[0];
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_EQ(columns.name_of(0), "aten::mm");
  EXPECT_EQ(columns.category_of(1), "cuda_runtime");
  EXPECT_EQ(columns.start_ns[0], 1661203462584767125);
  EXPECT_EQ(columns.duration_ns[0], 30001);
  EXPECT_EQ(columns.duration_ns[3], 12500);
  EXPECT_EQ(columns.phase, (std::vector<char>{'X', 'X', 's', 'X'}));
  EXPECT_EQ(columns.correlation, (std::vector<std::int64_t>{kAbsent, 9, kAbsent, 9}));
  EXPECT_EQ(columns.stream, (std::vector<std::int64_t>{kAbsent, kAbsent, kAbsent, 7}));
  EXPECT_EQ(columns.external_id, (std::vector<std::int64_t>{5, 5, kAbsent, 5}));
  EXPECT_EQ(columns.position, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(columns.flow_id.rows, (std::vector<Row>{2}));
  EXPECT_EQ(columns.flow_id.integers, (std::vector<std::int64_t>{9}));
}

TEST(Reader, KeepsTheArgumentsThatAreAskedFor) {
  const TraceFile usual = read_text(kKineto);
  const ArgumentColumn* dims = usual.columns.argument("Input Dims");
  ASSERT_NE(dims, nullptr);
  ASSERT_EQ(dims->find(0), 0U);
  EXPECT_EQ(usual.columns.names[dims->texts[0]], "[[2, 3], []]");
  EXPECT_EQ(dims->find(1), std::nullopt);
  EXPECT_EQ(usual.columns.argument("blocks per SM")->numbers, (std::vector<double>{0.5}));
  EXPECT_EQ(usual.columns.argument("device")->rows, (std::vector<Row>{3}));
  EXPECT_EQ(usual.columns.argument("Call stack"), nullptr);

  ReadOptions options;
  options.arguments = {
      {"Call stack", ArgumentKind::text}, {"cbid", ArgumentKind::integer}, {"grid", ArgumentKind::text}};
  const TraceFile asked = read_text(kKineto, options);
  EXPECT_EQ(asked.columns.names[asked.columns.argument("Call stack")->texts.at(0)], "a;b");
  EXPECT_EQ(asked.columns.argument("cbid")->integers.at(0), 211);
  EXPECT_EQ(asked.columns.names[asked.columns.argument("grid")->texts.at(0)], "[1, 1, 1]");
  EXPECT_EQ(asked.columns.argument("Input Dims"), nullptr);
  EXPECT_EQ(asked.columns.correlation, usual.columns.correlation);
}

TEST(Reader, KnowsLanesByProcessAndThreadAndWhatTheyAreCalled) {
  const Columns columns = read_text(kKineto).columns;
  EXPECT_EQ(columns.lane[0], columns.lane[1]);
  const Lane& host = columns.lanes[columns.lane[0]];
  EXPECT_EQ(host.pid, 17);
  EXPECT_EQ(host.tid, 18);
  EXPECT_EQ(host.process_name, "python");
  EXPECT_EQ(host.thread_name, "thread 18 (python)");
  const Lane& device = columns.lanes[columns.lane[3]];
  EXPECT_EQ(device.pid, 0);
  EXPECT_EQ(device.tid, kAbsent);
  EXPECT_EQ(device.thread, "stream 7");
  EXPECT_EQ(device.process_labels, "GPU 0");
}

TEST(Reader, KeepsTheFactsAroundTheEvents) {
  const TraceFile file = read_text(kKineto);
  EXPECT_EQ(file.rank, 3);
  EXPECT_EQ(file.base_time_ns, 1500);
  ASSERT_EQ(file.metadata.size(), 4U);
  EXPECT_EQ(file.metadata[2], (std::pair<std::string, std::string>{"traceName", "\"worker0.json\""}));
  EXPECT_EQ(file.notes.bytes, kKineto.size());
}

TEST(Reader, FindsTheRankInCompactJsonAndBehindTheEvents) {
  EXPECT_EQ(read_text(R"({"traceEvents":[],"distributedInfo":{"rank":0}})").rank, 0);
  EXPECT_EQ(read_text(R"({"distributedInfo":{"world_size":2,"rank":1},"traceEvents":[]})").rank, 1);
  EXPECT_EQ(read_text(R"({"distributedInfo":{},"traceEvents":[]})").rank, std::nullopt);
  EXPECT_EQ(read_text(R"({"distributedInfo":"no","traceEvents":[]})").rank, std::nullopt);
}

TEST(Reader, TakesABareArrayAByteOrderMarkAndGzip) {
  const std::string event = R"({"ph":"X","name":"a","ts":1,"dur":2})";
  EXPECT_EQ(read_text("[" + event + "]").columns.size(), 1U);
  EXPECT_EQ(read_text(" [ ] ").columns.size(), 0U);
  EXPECT_EQ(read_text("\xef\xbb\xbf[" + event + "," + event + "]").columns.size(), 2U);
  EXPECT_EQ(read_text(stored_gzip("[" + event) + stored_gzip("," + event + "]")).columns.size(), 2U);
  EXPECT_TRUE(read_text("[" + event + "]").notes.clean());
}

TEST(Reader, RefusesWhatHoldsNoEvents) {
  for (const std::string_view text :
       {"", " ", "hello", "{}", "{\"a\": 1}", "{\"traceEvents\": 1}", "{\"traceEv", "12",
        "\"traceEvents\": []", "{\"a\": {\"traceEvents\": []}}"}) {
    EXPECT_THROW(read_text(text), FormatError) << text;
  }
  EXPECT_THROW(read_file("/nonexistent/trace.json"), FormatError);
  EXPECT_THROW(read_file("/"), FormatError);
}

TEST(Reader, GivesTheSameWhateverTheWindow) {
  const TraceFile whole = read_text(kKineto);
  for (const std::size_t window : {1, 2, 7, 64, 100, 333, 1000}) {
    ReadOptions options;
    options.window_bytes = window;
    const TraceFile file = read_text(kKineto, options);
    EXPECT_TRUE(file.notes.clean()) << window;
    EXPECT_EQ(file.columns.start_ns, whole.columns.start_ns) << window;
    EXPECT_EQ(file.columns.name, whole.columns.name) << window;
    EXPECT_EQ(file.columns.position, whole.columns.position) << window;
    EXPECT_EQ(file.columns.argument("Input Dims")->texts, whole.columns.argument("Input Dims")->texts)
        << window;
    EXPECT_EQ(file.metadata, whole.metadata) << window;
  }
}

TEST(Reader, ReadsNumbersExactly) {
  struct Case {
    const char* token;
    std::int64_t ns;
  };
  const std::vector<Case> cases = {{"0", 0},
                                   {"1661203462584767.999", 1661203462584767999},
                                   {"0.0005", 1},
                                   {"0.00049", 0},
                                   {"0.9999", 1000},
                                   {"-1.5", -1500},
                                   {"\"1736412474714258.990\"", 1736412474714258990},
                                   {"1e3", 1'000'000},
                                   {"1.5E-1", 150},
                                   {"3999999999999999.5", 3999999999999999500}};
  for (const Case& c : cases) {
    const TraceFile file = read_text(std::string(R"([{"ph":"i","ts":)") + c.token + "}]");
    ASSERT_EQ(file.columns.size(), 1U) << c.token;
    EXPECT_EQ(file.columns.start_ns[0], c.ns) << c.token;
  }
}

TEST(Reader, TakesTheLastOfTwoEqualKeys) {
  const TraceFile file = read_text(
      R"([{"ph":"i","ts":1,"ts":2,"name":"a","name":"b","args":{"bytes":1,"bytes":2,"stream":3,"stream":4}}])");
  ASSERT_EQ(file.columns.size(), 1U);
  EXPECT_EQ(file.columns.start_ns[0], 2000);
  EXPECT_EQ(file.columns.name_of(0), "b");
  EXPECT_EQ(file.columns.stream[0], 4);
  EXPECT_EQ(file.columns.argument("bytes")->integers, (std::vector<std::int64_t>{2}));
}

TEST(Reader, UnescapesTexts) {
  const TraceFile file = read_text(R"([{"ph":"i","ts":1,"n\u0061me":"a\"b\\c\u00e4\n"}])");
  ASSERT_EQ(file.columns.size(), 1U);
  EXPECT_EQ(file.columns.name_of(0), "a\"b\\c\xc3\xa4\n");
}

}  // namespace
}  // namespace headrace::trace
