#include "headrace/analysis/device/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <numeric>
#include <ostream>
#include <random>
#include <string>

#include "analysis/device/trace_builder.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

std::map<std::string, double> summary_us(const CriticalPath& path) {
  std::map<std::string, double> result;
  for (std::size_t row = 0; row < path.summary.rows(); ++row)
    result[std::string(path.summary.texts("bound_by")[row])] = path.summary.numbers("duration_s")[row] * 1e6;
  return result;
}

/// What holds for every critical path.
void expect_invariants(const CriticalPath& path) {
  const CriticalPathGraph& graph = path.graph;
  EXPECT_TRUE(path.valid());
  std::int64_t sum_ns = 0;
  for (std::size_t i = 0; i < path.edges.size(); ++i) {
    sum_ns += graph.edge_weight_ns[path.edges[i]];
    if (i > 0) {
      EXPECT_EQ(graph.edge_to[path.edges[i - 1]], graph.edge_from[path.edges[i]]);
    }
  }
  EXPECT_EQ(sum_ns, path.length_ns);
  EXPECT_LE(path.length_ns, graph.end_ns - graph.begin_ns);
  EXPECT_EQ(path.path.rows(), path.edges.size());
  const Numbers& parts = path.summary.numbers("duration_s");
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), static_cast<double>(path.length_ns) / 1e9,
              1e-9);

  // No chain along the first edges that come is longer, wherever it begins.
  std::vector<std::int64_t> chain_ns(graph.nodes(), 0);
  for (std::size_t edge = 0; edge < graph.edges(); ++edge) {
    EXPECT_LE(graph.node_time_ns[graph.edge_from[edge]], graph.node_time_ns[graph.edge_to[edge]]);
    EXPECT_GE(graph.edge_weight_ns[edge], 0);
    std::int64_t& to = chain_ns[graph.edge_to[edge]];
    to = std::max(to, chain_ns[graph.edge_from[edge]] + graph.edge_weight_ns[edge]);
    EXPECT_LE(to, path.length_ns);
  }
}

/// An operator that launches two kernels, a wait for the device, another operator.
TraceBuilder one_launch() {
  TraceBuilder builder;
  builder.host("cpu_op", "aten::mm", 0, 100)
      .call("cudaLaunchKernel", 1, 10, 10)
      .call("cudaLaunchKernel", 2, 70, 10)
      .call("cudaDeviceSynchronize", 3, 100, 170)
      .host("cpu_op", "aten::item", 280, 20);
  builder.kernel("gemm", 1, 60, 100).kernel("ncclDevKernel_AllReduce", 2, 165, 100);
  return builder.device("cuda_sync", "Context Sync", 3, 101, 168, 99);
}

TEST(CriticalPath, GoesThroughTheDeviceWhereTheHostWaitsForIt) {
  const trace::Trace trace = one_launch().build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  EXPECT_EQ(path.length_ns, 285'000);
  EXPECT_EQ(summary_us(path), (std::map<std::string, double>{{"cpu_bound", 30},
                                                             {"gpu_kernel_launch_overhead", 50},
                                                             {"gpu_compute_bound", 100},
                                                             {"gpu_kernel_kernel_overhead", 5},
                                                             {"gpu_communication_bound", 100}}));
  const Table& table = path.path;
  ASSERT_EQ(table.rows(), 8U);
  EXPECT_EQ(table.texts("name")[0], "aten::mm");
  EXPECT_EQ(table.texts("type")[1], "launch_delay");
  EXPECT_EQ(table.texts("name")[1], "cudaLaunchKernel");
  EXPECT_EQ(table.texts("type")[5], "sync_dependency");
  EXPECT_EQ(table.texts("type")[6], "dependency");
  EXPECT_EQ(table.integers("row")[6], -1);
  EXPECT_EQ(table.integers("start_ns")[7], 280'000);
  EXPECT_TRUE(table.notes.empty());
}

TEST(CriticalPath, AWaitForADeviceIsOneForItsOwnWork) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaLaunchKernel", 1, 0, 10)
                                 .call("cudaLaunchKernel", 2, 20, 10)
                                 .call("cudaDeviceSynchronize", 3, 40, 100)
                                 .kernel("gemm", 1, 30, 60, 7, 0)
                                 .kernel("gemm", 2, 50, 70, 7, 1)
                                 .device("cuda_sync", "Context Sync", 3, 41, 98, 99, 0)
                                 .build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  std::vector<std::int64_t> waited_for;
  for (std::size_t edge = 0; edge < path.graph.edges(); ++edge) {
    if (path.graph.edge_type[edge] == EdgeType::sync_dependency)
      waited_for.push_back(path.graph.node_row[path.graph.edge_from[edge]]);
  }
  EXPECT_EQ(waited_for, (std::vector<std::int64_t>{3}));
}

TEST(CriticalPath, StaysOnTheHostWhereItNeverWaits) {
  const trace::Trace trace = TraceBuilder()
                                 .host("cpu_op", "aten::mm", 0, 400)
                                 .call("cudaLaunchKernel", 1, 10, 10)
                                 .kernel("gemm", 1, 30, 100)
                                 .build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  EXPECT_EQ(path.length_ns, 400'000);
  EXPECT_EQ(path.summary.texts("bound_by")[0], "cpu_bound");
  ASSERT_EQ(path.path.notes.size(), 1U);
  EXPECT_NE(path.path.notes[0].find("no synchronisation events"), std::string::npos);
}

TEST(CriticalPath, CallsThatWaitAreNoWork) {
  const trace::Trace trace = TraceBuilder()
                                 .host("cpu_op", "aten::mm", 0, 10)
                                 .call("cudaStreamSynchronize", 1, 20, 500)
                                 .host("cpu_op", "aten::mm", 530, 10)
                                 .build();
  EXPECT_EQ(critical_path(trace).length_ns, 20'000);
}

TEST(CriticalPath, TimeInRangesThatLoadDataIsDataLoading) {
  const trace::Trace trace = TraceBuilder()
                                 .host("user_annotation", "enumerate(DataLoader)#Single.__next__", 0, 50)
                                 .host("cpu_op", "aten::stack", 10, 20)
                                 .host("cpu_op", "aten::mm", 60, 7)
                                 .build();
  const CriticalPath path = critical_path(trace);
  EXPECT_EQ(summary_us(path), (std::map<std::string, double>{{"data_loading", 50}, {"cpu_bound", 7}}));
  CriticalPathOptions options;
  options.data_load_events.clear();
  EXPECT_EQ(summary_us(critical_path(trace, options)), (std::map<std::string, double>{{"cpu_bound", 27}}));
}

TEST(CriticalPath, AStreamWaitsForAnotherStreamsEvent) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaLaunchKernel", 1, 0, 5)
                                 .call("cudaEventRecord", 2, 10, 2)
                                 .call("cudaStreamWaitEvent", 3, 20, 2)
                                 .call("cudaLaunchKernel", 4, 30, 5)
                                 .kernel("first", 1, 10, 200, 7)
                                 .device("cuda_sync", "Stream Wait Event", 3, 21, 1, 20, 0,
                                         R"("wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2)")
                                 .kernel("second", 4, 212, 50, 20)
                                 .build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  // 10 from the launch to the first kernel; what lies between the kernels is nobody's.
  EXPECT_EQ(path.length_ns, 260'000);
  ASSERT_EQ(path.path.rows(), 4U);
  EXPECT_EQ(path.path.texts("type")[2], "sync_dependency");
  EXPECT_EQ(path.path.texts("name")[3], "second");
}

TEST(CriticalPath, TheHostWaitsForAnEvent) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaLaunchKernel", 1, 0, 5)
                                 .call("cudaEventRecord", 2, 10, 2)
                                 .call("cudaLaunchKernel", 3, 20, 5)
                                 .call("cudaEventSynchronize", 4, 30, 200)
                                 .kernel("awaited", 1, 10, 200, 7)
                                 .device("cuda_sync", "Event Sync", 4, 31, 198, 7, 0,
                                         R"("wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2)")
                                 .kernel("not awaited", 3, 220, 5, 7)
                                 .host("cpu_op", "aten::item", 230, 100)
                                 .build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  EXPECT_EQ(path.length_ns, 310'000);
}

TEST(CriticalPath, OneLaunchWaitsForTheOther) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaLaunchKernel", 1, 0, 50, 1)
                                 .call("cudaLaunchKernel", 2, 10, 60, 2)
                                 .host("cpu_op", "aten::mm", 80, 30, 2)
                                 .build();
  const CriticalPath path = critical_path(trace);
  expect_invariants(path);
  std::size_t between_threads = 0;
  for (std::size_t edge = 0; edge < path.graph.edges(); ++edge) {
    const auto& columns = trace.columns();
    if (columns.lane[path.graph.node_row[path.graph.edge_from[edge]]] !=
        columns.lane[path.graph.node_row[path.graph.edge_to[edge]]])
      ++between_threads;
  }
  EXPECT_EQ(between_threads, 2U);  // the second's start to the first's end, the first's end to the second's
  EXPECT_EQ(path.length_ns, 90'000);
}

TEST(CriticalPath, TheBackwardThreadIsPartOfTheForwardThread) {
  TraceBuilder builder;
  builder.host("cpu_op", "module.forward", 0, 100, 1)
      .host("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 110, 200, 2)
      .host("cpu_op", "Optimizer.step", 320, 50, 1);
  const CriticalPath path = critical_path(builder.build());
  expect_invariants(path);
  EXPECT_EQ(path.length_ns, 350'000);
}

TEST(CriticalPath, LooksAtInstancesOfAnAnnotation) {
  TraceBuilder builder;
  for (int step = 0; step < 3; ++step) {
    builder.step(step, 1000 * step, 900).host("cpu_op", "aten::mm", 1000 * step + 100, 10 + step);
  }
  const trace::Trace trace = builder.build();
  CriticalPathOptions options;
  options.annotation = "ProfilerStep";
  EXPECT_EQ(critical_path(trace, options).length_ns, 10'000);
  options.first_instance = 1;
  options.last_instance = 2;
  EXPECT_EQ(critical_path(trace, options).length_ns, 23'000);
  options.last_instance = 3;
  const CriticalPath none = critical_path(trace, options);
  EXPECT_EQ(none.path.rows(), 0U);
  EXPECT_EQ(none.path.notes,
            (std::vector<std::string>{
                "rank 0 has 3 ranges whose name contains 'ProfilerStep': there are no instances 1 to 3"}));
}

TEST(CriticalPath, ZeroWeightLaunchEdgesTieAllWorkToItsLaunch) {
  TraceBuilder builder;
  builder.host("cpu_op", "aten::mm", 0, 50).call("cudaLaunchKernel", 1, 40, 5).kernel("a", 1, 60, 10000);
  builder.call("cudaLaunchKernel", 2, 70, 5)
      .kernel("b", 2, 20000, 100);  // too long a gap for the device's delay
  const trace::Trace trace = builder.build();
  CriticalPathOptions options;
  const CriticalPath without = critical_path(trace, options);
  options.zero_weight_launch_edges = true;
  const CriticalPath with = critical_path(trace, options);
  expect_invariants(without);
  expect_invariants(with);
  EXPECT_EQ(with.graph.edges(), without.graph.edges() + 1);
}

TEST(CriticalPath, NothingHasAnEmptyPathAndSaysSo) {
  for (const trace::Trace& trace :
       {TraceBuilder().build(), TraceBuilder().kernel("never launched", 0, 5, 5).build(),
        TraceBuilder().host("cpu_op", "no duration", 5, 0).build()}) {
    const CriticalPath path = critical_path(trace);
    EXPECT_EQ(path.length_ns, 0);
    EXPECT_EQ(path.path.rows(), 0U);
    EXPECT_EQ(path.summary.rows(), 0U);
    EXPECT_EQ(path.path.notes,
              (std::vector<std::string>{"rank 0 has no operators, calls or launched work there"}));
  }
}

/// Events at a few moments on a few threads and streams: half of them begin or end together, many overlap
/// half.
trace::Trace muddle(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  constexpr std::array<const char*, 5> kCalls = {"cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync",
                                                 "cudaDeviceSynchronize", "cudaStreamSynchronize"};
  constexpr std::array<const char*, 4> kOperators = {"aten::mm", "forward", "autograd::engine", "aten::item"};
  TraceBuilder builder;
  // Each draw is a statement of its own: compilers differ in the order in which they evaluate arguments.
  for (int i = 0; i < 25; ++i) {
    const int thread = 1 + below(3);
    const int duration = below(12);
    const int start = below(30);
    const auto name = static_cast<std::size_t>(below(4));
    builder.host("cpu_op", kOperators[name], start, duration, thread);
  }
  for (int correlation = 1; correlation <= 20; ++correlation) {
    const auto call = static_cast<std::size_t>(below(5));
    const int start = below(30);
    const int thread = 1 + below(3);
    const int duration = below(6);
    builder.call(kCalls[call], correlation, start, duration, thread);
    if (call == 3) {
      builder.device("cuda_sync", "Context Sync", correlation, start, below(9), 99);
    } else if (call == 4) {
      const int stream = 7 + below(2);
      const int waited = below(9);
      builder.device("cuda_sync", "Stream Sync", correlation, start, waited, stream);
    } else {
      const int stream = 7 + below(2);
      const int work = below(7);
      const int delay = below(9);
      builder.kernel("gemm", correlation, start + delay, work, stream);
    }
  }
  return builder.build();
}

TEST(CriticalPath, EventsInAMuddleHaveOneToo) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_invariants(critical_path(muddle(seed)));
    if (HasFailure()) break;
  }
}

/// Lengths of HTA 0.6.1 without data_load_events, in microseconds; traces with integer time stamps.
struct Known {
  const char* file;
  const char* annotation;
  std::size_t first;
  std::size_t last;
  std::int64_t length_us;

  friend std::ostream& operator<<(std::ostream& stream, const Known& known) { return stream << known.file; }
};

class CriticalPathOfHta : public testing::TestWithParam<Known> {};

TEST_P(CriticalPathOfHta, IsAsLong) {
  const Known& known = GetParam();
  const std::string file = trace::conformance_file("kineto/" + std::string(known.file) + ".json.gz");
  HEADRACE_NEEDS_FILE(file);
  const trace::Trace trace = trace::load_trace(file);
  CriticalPathOptions options;
  options.annotation = known.annotation;
  options.first_instance = known.first;
  options.last_instance = known.last;
  options.data_load_events.clear();
  // HTA always leaves the last step out.
  options.scope.keep_cut_off_step = true;
  if (trace.steps.all().size() > 1) options.scope.end_ns = trace.steps.all().back().start_ns;
  const CriticalPath path = critical_path(trace, options);
  expect_invariants(path);
  EXPECT_EQ(path.length_ns, 1000 * known.length_us);
}

INSTANTIATE_TEST_SUITE_P(Traces, CriticalPathOfHta,
                         testing::Values(Known{"simple_add", "", 0, 0, 41'435'012},
                                         Known{"control", "ProfilerStep", 1, 1, 40'308},
                                         Known{"control", "ProfilerStep", 3, 3, 38'344},
                                         Known{"control", "", 0, 0, 153'533},
                                         Known{"test", "ProfilerStep", 2, 2, 115'051},
                                         Known{"df_index_resolver", "ProfilerStep", 0, 1, 504'611},
                                         Known{"sampled_rank-0", "", 0, 0, 301'476}));

}  // namespace
}  // namespace headrace::analysis::device
