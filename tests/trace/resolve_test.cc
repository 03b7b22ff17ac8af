// What is resolved once per rank: launches, call stacks, steps; on traces written by hand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "headrace/trace/trace.h"
#include "trace/conformance_data.h"

namespace headrace::trace {
namespace {

/// A trace under construction; rows are numbered as they are added.
class HandMade {
 public:
  Row call(const std::string& category, const std::string& name, int start, int duration, int correlation = 0,
           int thread = 1) {
    return add(category, name, start, duration, correlation, thread, "");
  }
  Row device(const std::string& category, const std::string& name, int start, int duration, int correlation) {
    return add(category, name, start, duration, correlation, 7, ", \"stream\": 7");
  }
  Trace resolved() const {
    const std::string text = "[" + events_ + "]";
    MemoryBytes source(text);
    return resolve(read_source(source, "hand-made"));
  }

 private:
  Row add(const std::string& category, const std::string& name, int start, int duration, int correlation,
          int thread, const std::string& more) {
    if (rows_ > 0) events_ += ",";
    events_ += R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": 1, "tid": )" +
               std::to_string(thread) + ", \"ts\": " + std::to_string(start) +
               ", \"dur\": " + std::to_string(duration) +
               ", \"args\": {\"correlation\": " + std::to_string(correlation) + more + "}}";
    return rows_++;
  }

  std::string events_;
  Row rows_ = 0;
};

using Rows = std::vector<Row>;

Rows started_by(const Trace& trace, Row launch) {
  const auto started = trace.correlation.started_by(launch);
  return {started.begin(), started.end()};
}

TEST(EventKind, KnowsCategoriesOfAllAges) {
  EXPECT_EQ(kind_of_category("cpu_op"), EventKind::operation);
  EXPECT_EQ(kind_of_category("Operator"), EventKind::operation);
  EXPECT_EQ(kind_of_category("cuda_driver"), EventKind::runtime);
  EXPECT_EQ(kind_of_category("privateuse1_runtime"), EventKind::runtime);
  EXPECT_EQ(kind_of_category("Memset"), EventKind::memory_set);
  EXPECT_EQ(kind_of_category("ac2g"), EventKind::other);
  EXPECT_TRUE(is_device_work(EventKind::memory_copy));
  EXPECT_FALSE(is_device_work(EventKind::synchronisation));
  EXPECT_TRUE(is_on_device(EventKind::device_annotation));
  EXPECT_FALSE(is_on_device(EventKind::runtime));
}

TEST(Correlation, TiesWorkToItsLaunch) {
  HandMade made;
  const Row second = made.call("cuda_runtime", "cudaLaunchKernel", 20, 2, 12);
  const Row first = made.call("cuda_runtime", "cudaLaunchKernel", 10, 2, 11);
  const Row wait = made.call("cuda_runtime", "cudaDeviceSynchronize", 30, 2, 13);
  const Row kernel = made.device("kernel", "gemm", 25, 5, 11);
  const Row copy = made.device("gpu_memcpy", "Memcpy HtoD", 31, 5, 12);
  const Trace trace = made.resolved();
  EXPECT_EQ(trace.correlation.launch_of(kernel), first);
  EXPECT_EQ(trace.correlation.launch_of(copy), second);
  EXPECT_EQ(trace.correlation.launch_of(first), kNoRow);
  EXPECT_EQ(started_by(trace, first), Rows{kernel});
  EXPECT_EQ(started_by(trace, second), Rows{copy});
  EXPECT_EQ(started_by(trace, wait), Rows{});
  EXPECT_EQ(started_by(trace, kernel), Rows{});
  EXPECT_EQ(trace.correlation.without_launch(), 0U);
}

TEST(Correlation, AGraphLaunchStartsManyAndTheOutermostCallIsTheLaunch) {
  HandMade made;
  const Row late = made.device("kernel", "b", 60, 5, 5);
  const Row early = made.device("kernel", "a", 50, 5, 5);
  const Row driver = made.call("cuda_driver", "cuGraphLaunch", 11, 2, 5);
  const Row runtime = made.call("cuda_runtime", "cudaGraphLaunch", 10, 4, 5);
  const Trace trace = made.resolved();
  EXPECT_EQ(started_by(trace, runtime), (Rows{early, late}));
  EXPECT_EQ(started_by(trace, driver), Rows{});
}

TEST(Correlation, CountsWorkWhoseLaunchIsMissing) {
  HandMade made;
  const Row orphan = made.device("kernel", "a", 50, 5, 5);
  const Row unnamed = made.device("kernel", "b", 60, 5, 0);
  made.call("cuda_runtime", "cudaLaunchKernel", 10, 2, 0);
  const Row host = made.call("cpu_op", "an operator with the same number", 10, 2, 5);
  const Trace trace = made.resolved();
  EXPECT_EQ(trace.correlation.launch_of(orphan), kNoRow);
  EXPECT_EQ(trace.correlation.launch_of(unnamed), kNoRow);
  EXPECT_EQ(started_by(trace, host), Rows{});
  EXPECT_EQ(trace.correlation.without_launch(), 2U);
}

TEST(CallStack, FindsTheInnermostEnclosingEventOfTheSameThread) {
  HandMade made;
  const Row inner = made.call("cuda_runtime", "launch", 12, 3);
  const Row outer = made.call("cpu_op", "linear", 0, 100);
  const Row middle = made.call("cpu_op", "mm", 10, 10);
  const Row next = made.call("cpu_op", "add", 20, 10);
  const Row elsewhere = made.call("cpu_op", "mm", 10, 10, 0, 2);
  const Row behind = made.call("cpu_op", "relu", 100, 5);
  const Row kernel = made.device("kernel", "gemm", 12, 3, 1);
  const Trace trace = made.resolved();
  EXPECT_EQ(trace.calls.parent_of(inner), middle);
  EXPECT_EQ(trace.calls.parent_of(middle), outer);
  EXPECT_EQ(trace.calls.parent_of(next), outer);
  const std::vector<std::uint32_t> depths = trace.calls.depths();
  ASSERT_EQ(depths.size(), trace.columns().size());
  for (const Row top : {outer, elsewhere, behind, kernel}) {
    EXPECT_EQ(trace.calls.parent_of(top), kNoRow) << top;
    EXPECT_EQ(depths[top], 0U) << top;
  }
  EXPECT_EQ(depths[middle], 1U);
  EXPECT_EQ(depths[next], 1U);
  EXPECT_EQ(depths[inner], 2U);
  EXPECT_EQ(trace.calls.overlapping(), 0U);
}

TEST(CallStack, EqualTimesAndNoDurationNest) {
  HandMade made;
  const Row outer = made.call("cpu_op", "a", 10, 10);
  const Row same = made.call("cpu_op", "b", 10, 10);
  const Row moment = made.call("cpu_op", "c", 15, 0);
  const Row at_start = made.call("cpu_op", "d", 10, 0);
  const Trace trace = made.resolved();
  EXPECT_EQ(trace.calls.parent_of(same), outer);
  EXPECT_EQ(trace.calls.parent_of(moment), same);
  EXPECT_EQ(trace.calls.parent_of(at_start), same);
}

TEST(CallStack, CountsEventsThatOverlapHalf) {
  HandMade made;
  const Row all = made.call("cpu_op", "all", 0, 100);
  const Row first = made.call("cpu_op", "first", 10, 20);
  const Row second = made.call("cpu_op", "second", 20, 20);
  const Trace trace = made.resolved();
  EXPECT_EQ(trace.calls.parent_of(first), all);
  EXPECT_EQ(trace.calls.parent_of(second), all);
  EXPECT_EQ(trace.calls.overlapping(), 1U);
}

TEST(Steps, HoldWhatBeganInThemAndTheDeviceWorkLaunchedInThem) {
  HandMade made;
  const Row before = made.call("cpu_op", "load", 0, 5);
  const Row later_step = made.call("user_annotation", "ProfilerStep#8", 200, 100);
  const Row step = made.call("user_annotation", "ProfilerStep#7", 100, 90);
  const Row op = made.call("cpu_op", "mm", 110, 200);
  const Row launch = made.call("cuda_runtime", "cudaLaunchKernel", 120, 2, 4);
  const Row kernel = made.device("kernel", "gemm", 250, 5, 4);
  const Row between = made.call("cpu_op", "gap", 195, 2);
  const Row last = made.call("cpu_op", "mm", 299, 2);
  const Row behind = made.call("cpu_op", "mm", 300, 2);
  const Row orphan = made.device("kernel", "gemm", 150, 5, 99);
  made.device("gpu_user_annotation", "ProfilerStep#7", 240, 20, 0);
  made.call("user_annotation", "ProfilerStep#x", 1000, 20);
  const Trace trace = made.resolved();
  ASSERT_EQ(trace.steps.all().size(), 2U);
  EXPECT_EQ(trace.steps.all()[0].number, 7);
  EXPECT_EQ(trace.steps.all()[0].start_ns, 100'000);
  EXPECT_EQ(trace.steps.all()[0].end_ns, 190'000);
  EXPECT_EQ(trace.steps.all()[1].number, 8);
  for (const Row row : {step, op, launch, kernel}) EXPECT_EQ(trace.steps.step_of(row), 0) << row;
  for (const Row row : {later_step, last}) EXPECT_EQ(trace.steps.step_of(row), 1) << row;
  for (const Row row : {before, between, behind, orphan})
    EXPECT_EQ(trace.steps.step_of(row), Steps::kNone) << row;
}

TEST(Traces, ComeByRankAndFilesWithoutOneGetWhatIsLeft) {
  const std::string folder = ::testing::TempDir() + "headrace_traces_" + std::to_string(getpid());
  const std::vector<std::string> texts = {R"({"distributedInfo": {"rank": 2}, "traceEvents": []})", R"([])",
                                          R"({"traceEvents": [], "distributedInfo": {"rank": 0}})",
                                          R"({"traceEvents": []})"};
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    paths.push_back(folder + "_" + std::to_string(i) + ".json");
    std::FILE* file = std::fopen(paths[i].c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fputs(texts[i].c_str(), file);
    std::fclose(file);
  }
  const std::vector<Trace> traces = load_traces(paths);
  ASSERT_EQ(traces.size(), 4U);
  const std::vector<std::size_t> expected = {2, 1, 0, 3};  // ranks 0 and 2 are said, 1 and 3 are left
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(traces[i].rank, static_cast<std::int64_t>(i));
    EXPECT_EQ(traces[i].file.path, paths[expected[i]]);
  }
  for (const std::string& path : paths) std::remove(path.c_str());
}

struct Resolved {
  const char* file;
  std::size_t work;
  std::size_t launched;
  std::size_t steps;
};

class KinetoTraceResolved : public ::testing::TestWithParam<Resolved> {};

/// Counts from Python, by categories and sets of correlations.
TEST_P(KinetoTraceResolved, HasTheLaunchesAndStepsOfItsFile) {
  const std::string path = conformance_file(std::string("kineto/") + GetParam().file + ".json.gz");
  HEADRACE_NEEDS_FILE(path);
  const Trace trace = load_trace(path);
  const Columns& columns = trace.columns();
  std::size_t work = 0;
  std::size_t launched = 0;
  for (Row row = 0; row < columns.size(); ++row) {
    if (!is_device_work(trace.kinds[row])) continue;
    ++work;
    const Row launch = trace.correlation.launch_of(row);
    if (launch == kNoRow) continue;
    ++launched;
    ASSERT_EQ(columns.correlation[launch], columns.correlation[row]);
    ASSERT_EQ(trace.steps.step_of(row), trace.steps.step_of(launch));
  }
  EXPECT_EQ(work, GetParam().work);
  EXPECT_EQ(launched, GetParam().launched);
  EXPECT_EQ(trace.steps.all().size(), GetParam().steps);
  for (Row row = 0; row < columns.size(); ++row) {
    const Row parent = trace.calls.parent_of(row);
    if (parent == kNoRow) continue;
    ASSERT_EQ(columns.lane[parent], columns.lane[row]);
    ASSERT_LE(columns.start_ns[parent], columns.start_ns[row]);
    ASSERT_GE(columns.end_ns(parent), columns.end_ns(row));
  }
}

constexpr Resolved kResolved[] = {{"test", 15632, 15018, 6},
                                  {"control", 9450, 9450, 6},
                                  {"resnet50_workers0", 9096, 9096, 6},
                                  {"df_index_resolver", 22290, 22290, 5},
                                  {"simple_add", 98, 98, 0},
                                  {"amd_mi250", 16, 16, 2}};
INSTANTIATE_TEST_SUITE_P(Files, KinetoTraceResolved, ::testing::ValuesIn(kResolved),
                         [](const auto& info) { return std::string(info.param.file); });

}  // namespace
}  // namespace headrace::trace
