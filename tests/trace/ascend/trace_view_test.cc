// trace_view.json: rows without categories, one thread as two, connections instead of correlations.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "headrace/trace/trace.h"
#include "trace/ascend/small_run.h"
#include "trace/conformance_data.h"

namespace headrace::trace {
namespace {

Trace trace_of(const std::string& text) {
  MemoryBytes source(text);
  return resolve(read_source(source, "trace_view.json"));
}

Row row_of(const Trace& trace, std::string_view name) {
  for (Row row = 0; row < trace.columns().size(); ++row) {
    if (trace.columns().phase[row] == 'X' && trace.columns().name_of(row) == name) return row;
  }
  ADD_FAILURE() << "no event " << name;
  return kNoRow;
}

TEST(AscendTraceView, KindsComeFromRowsAndTaskTypes) {
  const Trace trace = trace_of(ascend::small_trace_view());
  const auto kind = [&](std::string_view name) { return trace.kinds[row_of(trace, name)]; };
  EXPECT_EQ(kind("MatMul1"), EventKind::computation);
  EXPECT_EQ(kind("MemSet"), EventKind::computation);  // a kernel of this name fills, and occupies a core
  EXPECT_EQ(kind("hcom_allReduce__271_0_1"), EventKind::collective);
  EXPECT_EQ(kind("Memcpy HtoD"), EventKind::memory_copy);
  EXPECT_EQ(kind("EVENT_WAIT"), EventKind::synchronisation);
  EXPECT_EQ(kind("SDMA"), EventKind::device_task);
  EXPECT_EQ(kind("Memcpy"), EventKind::device_task);  // a part of the collective
  EXPECT_EQ(kind("Node@launch"), EventKind::runtime);
  EXPECT_EQ(kind("aten::mm"), EventKind::operation);
  EXPECT_EQ(trace.device_rows.size(), 4U);
}

TEST(AscendTraceView, TimesInQuotesAreExact) {
  const Trace trace = trace_of(ascend::small_trace_view());
  EXPECT_EQ(trace.columns().start_ns[row_of(trace, "MatMul1")], 1'000'300'000);
}

TEST(AscendTraceView, LaunchesFollowTheTaskQueueToTheOperator) {
  const Trace trace = trace_of(ascend::small_trace_view());
  const Columns& columns = trace.columns();
  const Row launch = trace.correlation.launch_of(row_of(trace, "MatMul1"));
  ASSERT_NE(launch, kNoRow);
  EXPECT_EQ(columns.start_ns[launch], 1'000'170'000);
  // Its thread in CANN's rows is the one of the framework's rows.
  EXPECT_EQ(columns.lane[launch], columns.lane[row_of(trace, "Dequeue@mm")]);
  const Row enqueue = trace.calls.handed_over_by(launch);
  ASSERT_NE(enqueue, kNoRow);
  EXPECT_EQ(columns.name_of(enqueue), "Enqueue");
  EXPECT_EQ(columns.name_of(trace.calls.parent_of(enqueue)), "aten::mm");
  EXPECT_EQ(trace.calls.origin_of(launch), enqueue);
  EXPECT_EQ(trace.calls.origin_of(enqueue), enqueue);
  ASSERT_EQ(trace.steps.all().size(), 1U);
  EXPECT_EQ(trace.steps.all()[0].number, 7);
  for (const Row row : trace.device_rows) EXPECT_EQ(trace.steps.step_of(row), 0);
}

TEST(AscendTraceView, WithoutAQueueOperatorFlowsLeadToTheOperator) {
  const std::string text = R"([
{"ph":"M","name":"process_name","pid":100,"tid":0,"args":{"name":"Python"}},
{"ph":"M","name":"process_labels","pid":100,"tid":0,"args":{"labels":"CPU"}},
{"ph":"M","name":"process_name","pid":200000,"tid":0,"args":{"name":"CANN"}},
{"ph":"M","name":"process_name","pid":200001,"tid":0,"args":{"name":"Ascend Hardware"}},
{"ph":"X","name":"Mul","pid":100,"tid":1,"ts":"10.5","dur":5,"cat":"cpu_op"},
{"ph":"s","name":"torch_to_npu","id":9,"pid":100,"tid":1,"ts":"10.5","cat":"async_npu"},
{"ph":"X","name":"Node@launch","pid":200000,"tid":2,"ts":"20","dur":5,"args":{"connection_id":3}},
{"ph":"X","name":"Mul1","pid":200001,"tid":0,"ts":"30","dur":5,"args":{"connection_id":3,"Task Type":"AI_CORE"}},
{"ph":"f","name":"torch_to_npu","id":9,"pid":200001,"tid":0,"ts":"30","cat":"async_npu"}])";
  const Trace trace = trace_of(text);
  const Row from = trace.calls.handed_over_by(trace.correlation.launch_of(row_of(trace, "Mul1")));
  ASSERT_NE(from, kNoRow);
  EXPECT_EQ(trace.columns().name_of(from), "Mul");
}

TEST(AscendTraceView, DevicesStreamsAndBytesAreNumbers) {
  const Trace trace = trace_of(ascend::small_trace_view());
  const Columns& columns = trace.columns();
  const Row collective = row_of(trace, "hcom_allReduce__271_0_1");
  EXPECT_EQ(columns.stream[collective], 4);  // of its parts
  const ArgumentColumn& device = *columns.argument("device");
  EXPECT_EQ(device.integers[device.find(collective).value()], 3);
  const ArgumentColumn& bytes = *columns.argument("bytes");
  EXPECT_EQ(bytes.integers[bytes.find(row_of(trace, "Memcpy HtoD")).value()], 40000);
}

TEST(AscendTraceView, AHandoverBackInTimeIsNone) {
  std::string text = ascend::small_trace_view();
  const std::string late = R"("ts":"1000120.000","dur":5)";
  text.replace(text.find(late), late.size(), R"("ts":"1000190.000","dur":5)");
  const Trace trace = trace_of(text);
  const Row launch = trace.correlation.launch_of(row_of(trace, "MatMul1"));
  EXPECT_EQ(trace.calls.handed_over_by(launch), kNoRow);
}

TEST(AscendTraceView, RowsOfOtherProfilersStayAsTheyAre) {
  const Trace trace = trace_of(R"([{"ph":"X","name":"a","pid":1,"tid":2,"ts":1,"dur":1}])");
  EXPECT_EQ(trace.columns().category_of(0), "");
  EXPECT_EQ(trace.kinds[0], EventKind::other);
}

TEST(AscendTraceView, SampleHasEveryKernelOnce) {
  const std::string path =
      conformance_file("ascend/text_level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  HEADRACE_NEEDS_FILE(path);
  const Trace trace = load_trace(path);
  std::array<std::size_t, 16> counts{};
  std::size_t launched = 0;
  for (const Row row : trace.device_rows) {
    ++counts[static_cast<std::size_t>(trace.kinds[row])];
    const Row launch = trace.correlation.launch_of(row);
    launched += launch != kNoRow && trace.calls.handed_over_by(launch) != kNoRow ? 1 : 0;
  }
  EXPECT_EQ(counts[static_cast<std::size_t>(EventKind::computation)], 187U);  // rows of kernel_details.csv
  EXPECT_EQ(counts[static_cast<std::size_t>(EventKind::collective)], 4U);
  EXPECT_EQ(counts[static_cast<std::size_t>(EventKind::memory_copy)], 24U);
  EXPECT_EQ(launched, trace.device_rows.size());  // one thread launches what others ask for
}

}  // namespace
}  // namespace headrace::trace
