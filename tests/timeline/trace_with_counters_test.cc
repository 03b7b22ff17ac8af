#include "headrace/timeline/trace_with_counters.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "analysis/device/two_steps.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/memory.h"
#include "headrace/profile/errors.h"
#include "profile/scratch_folder.h"
#include "timeline/timeline_file.h"

namespace headrace::timeline {
namespace {

using analysis::Table;
using analysis::device::TraceBuilder;
using profile::ScratchFolder;

/// What a file holds, written beside others in a folder of the test's.
class TraceWithCounters : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  trace::Trace trace_of(const std::string& text) const {
    std::ofstream(path("trace.json"), std::ios::binary) << text;
    return trace::load_trace(path("trace.json"));
  }

  ScratchFolder folder_;
};

/// Two streams, copies that overlap, and a bandwidth that no few digits hold.
TraceBuilder traffic() {
  TraceBuilder builder = analysis::device::two_steps();
  builder.call("cudaMemcpyAsync", 21, 201.5, 1)
      .copy("Memcpy DtoH (Device -> Pageable)", 21, 203.125, 2.5, 20,
            R"|("bytes": 100, "memory bandwidth (GB/s)": 0.1234567890123)|")
      .call("cudaMemcpyAsync", 22, 202, 1)
      .copy("Memcpy DtoH (Device -> Pinned)", 22, 204, 3, 21,
            R"|("bytes": 9000, "memory bandwidth (GB/s)": 3.5)|");
  return builder;
}

/// The points of a track, as its table has them.
void expect_points(const std::vector<nlohmann::json>& events, const char* value, const Table& series,
                   const std::vector<std::size_t>& rows) {
  ASSERT_EQ(events.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(TimelineFile::ns(events[i].at("ts")), series.integers("time_ns")[rows[i]]);
    const double written = events[i].at("args").at(value).get<double>();
    const auto& column = series.columns().back();
    const double expected = std::holds_alternative<analysis::Numbers>(column.values)
                                ? std::get<analysis::Numbers>(column.values)[rows[i]]
                                : static_cast<double>(std::get<analysis::Integers>(column.values)[rows[i]]);
    EXPECT_EQ(written, expected) << "to the last bit";
  }
}

TEST_F(TraceWithCounters, HasThePointsOfBothTablesBehindItsEvents) {
  const std::string text = traffic().text();
  const trace::Trace trace = trace_of(text);
  const CountersResult result = write_with_counters({trace, path("out.json.gz"), {}, {}});
  const TimelineFile file(path("out.json.gz"));
  EXPECT_EQ(result.counters, file.ours("C").size());
  EXPECT_TRUE(result.notes.empty());

  const Table queues = analysis::device::queue_length({&trace, 1}).series;
  std::map<std::int64_t, std::vector<std::size_t>> rows_of_stream;
  for (std::size_t row = 0; row < queues.rows(); ++row)
    rows_of_stream[queues.integers("stream")[row]].push_back(row);
  ASSERT_EQ(rows_of_stream.size(), 3U);
  for (const auto& [stream, rows] : rows_of_stream) {
    std::vector<nlohmann::json> track;
    for (const auto& event : file.ours("C", "Queue Length"))
      if (event.at("id") == stream) track.push_back(event);
    expect_points(track, "Queue Length", queues, rows);
    EXPECT_EQ(track.front().at("pid"), 0) << "the device's process";
  }

  const Table copies = analysis::device::memory_bandwidth({&trace, 1}).series;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < copies.rows(); ++row)
    if (copies.texts("name")[row] == "Memcpy DtoH") rows.push_back(row);
  EXPECT_EQ(rows.size(), 4U);
  expect_points(file.ours("C", "Memcpy DtoH"), "Memcpy BW", copies, rows);

  // What was there stands as it stood.
  nlohmann::json before = nlohmann::json::parse(text);
  nlohmann::json after = file.document;
  auto& events = after.at("traceEvents");
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(before.at("traceEvents").size()), events.end());
  EXPECT_EQ(after, before);
}

TEST_F(TraceWithCounters, ReadsAgainAndAnswersTheSame) {
  const trace::Trace trace = trace_of(traffic().text());
  write_with_counters({trace, path("out.json"), {}, {}});
  const trace::Trace again = trace::load_trace(path("out.json"));
  EXPECT_TRUE(again.file.notes.clean());
  ASSERT_GT(again.columns().size(), trace.columns().size());
  for (trace::Row row = 0; row < trace.columns().size(); ++row) {
    EXPECT_EQ(again.columns().name_of(row), trace.columns().name_of(row));
    EXPECT_EQ(again.columns().start_ns[row], trace.columns().start_ns[row]);
    EXPECT_EQ(again.kinds[row], trace.kinds[row]);
  }
  EXPECT_EQ(analysis::device::queue_length({&again, 1}).series.integers("queue_length"),
            analysis::device::queue_length({&trace, 1}).series.integers("queue_length"));
  EXPECT_EQ(analysis::device::memory_bandwidth({&again, 1}).series.numbers("bandwidth_gbps"),
            analysis::device::memory_bandwidth({&trace, 1}).series.numbers("bandwidth_gbps"));
}

TEST_F(TraceWithCounters, CountsInTheStepsThatAreAskedFor) {
  const trace::Trace trace = trace_of(traffic().text());
  CountersRequest request{trace, path("out.json"), {}, {}};
  request.scope.steps = {1};
  write_with_counters(request);
  const TimelineFile file(path("out.json"));
  EXPECT_TRUE(file.ours("C", "Memcpy HtoD").empty()) << "of step 0";
  EXPECT_EQ(file.ours("C", "Queue Length").size(), 8U) << "four works of step 1";
}

TEST_F(TraceWithCounters, NamesTheProcessAsTheFileDoes) {
  const trace::Trace trace = trace_of(
      R"([{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":-2.5,"dur":1,)"
      R"("args":{"correlation":1}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":"GPU \"0\"","tid":7,"ts":-1,"dur":5,)"
      R"("args":{"correlation":1,"stream":7,"device":0}},])");
  EXPECT_EQ(write_with_counters({trace, path("out.json"), {}, {}}).counters, 2U);
  const TimelineFile file(path("out.json"));
  ASSERT_TRUE(file.document.is_array());
  const auto points = file.ours("C");
  EXPECT_EQ(points[0].at("pid"), "GPU \"0\"");
  EXPECT_EQ(points[0].at("ts"), -2.5) << "before the zero of the file's clock";
}

TEST_F(TraceWithCounters, NamesMayBeLong) {
  const std::string name(5000, 'x');
  const trace::Trace trace = trace_of(TraceBuilder().copy(name, 0, 1, 2, 7, R"("bytes": 4000)").text());
  EXPECT_EQ(write_with_counters({trace, path("out.json.gz"), {}, {}}).counters, 2U);
  const auto points = TimelineFile(path("out.json.gz")).ours("C", name);
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].at("args").at("Memcpy BW"), 2.0);
  EXPECT_EQ(points[1].at("args").at("Memcpy BW"), 0.0);
}

TEST_F(TraceWithCounters, OfADamagedTraceKeepsWhatIsWhole) {
  std::string text = traffic().text();
  const std::size_t events = text.find("[{\"ph\"");
  text.insert(events + 1, R"({"ph":"X","name":N/A,"ts":1},)");
  text.resize(text.rfind("Memcpy DtoH"));  // its writer was killed
  const trace::Trace trace = trace_of(text);
  const CountersResult result = write_with_counters({trace, path("out.json"), {}, {}});
  const TimelineFile file(path("out.json"));
  EXPECT_EQ(file.document.at("distributedInfo").at("world_size"), 2);
  EXPECT_EQ(file.ours("C").size(), result.counters);
  EXPECT_GT(result.counters, 0U);
  EXPECT_EQ(result.notes, (std::vector<std::string>{"1 event left out: no viewer could read it"}));
  EXPECT_TRUE(trace::load_trace(path("out.json")).file.notes.clean());
}

TEST_F(TraceWithCounters, ReadsItsBytesFromWhereTheCallerSays) {
  const std::string text = traffic().text();
  trace::MemoryBytes source(text);
  const trace::Trace trace = trace::resolve(trace::read_source(source, "store://bucket/trace.json"));
  int opened = 0;
  CountersRequest request{trace, path("out.json"), {}, [&] {
                            ++opened;
                            return std::make_unique<trace::MemoryBytes>(text);
                          }};
  EXPECT_GT(write_with_counters(request).counters, 0U);
  EXPECT_EQ(opened, 1);
}

TEST_F(TraceWithCounters, RefusesWhatItCannotDo) {
  const trace::Trace host = trace_of(TraceBuilder().host("cpu_op", "aten::mm", 0, 5).text());
  EXPECT_THROW(write_with_counters({host, path("out.json"), {}, {}}), UsageError);
  EXPECT_FALSE(std::filesystem::exists(path("out.json")));
  const trace::Trace trace = trace_of(traffic().text());
  EXPECT_THROW(write_with_counters({trace, path("trace.json"), {}, {}}), UsageError);
  EXPECT_THROW(write_with_counters({trace, path("nowhere/out.json"), {}, {}}), Error);
  EXPECT_EQ(trace::load_trace(path("trace.json")).columns().size(), trace.columns().size());
}

}  // namespace
}  // namespace headrace::timeline
