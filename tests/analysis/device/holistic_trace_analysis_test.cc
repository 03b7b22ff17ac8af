// The figures of Holistic Trace Analysis on public traces, where our definitions agree with it, and the
// documented difference where they do not (docs/device_traces.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "analysis/device/trace_builder.h"
#include "headrace/analysis/device/annotations.h"
#include "headrace/analysis/device/launches.h"
#include "headrace/analysis/device/operators.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

using trace::conformance_file;

/// What HTA keeps of a trace: everything before the start of the last of several steps.
Scope without_last_step(const trace::Trace& trace) {
  Scope scope;
  scope.keep_cut_off_step = true;
  if (trace.steps.all().size() >= 2) scope.end_ns = trace.steps.all().back().start_ns;
  return scope;
}

double percent_of(const nlohmann::json& value) { return value.is_null() ? NAN : value.get<double>(); }

/// Traces with integer time stamps, on one rank.
class HolisticTraceAnalysis : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string expected = conformance_file("expected/hta.json");
    const std::string file = conformance_file("kineto/" + std::string(GetParam()) + ".json.gz");
    HEADRACE_NEEDS_FILE(expected);
    HEADRACE_NEEDS_FILE(file);
    std::ifstream stream(expected);
    expected_ = nlohmann::json::parse(stream).at("cases").at(GetParam());
    trace_ = trace::load_trace(file);
    scope_ = without_last_step(trace_);
  }

  trace::Trace trace_;
  Scope scope_;
  nlohmann::json expected_;
};

TEST_P(HolisticTraceAnalysis, TimeBreakdown) {
  const nlohmann::json& expected = expected_.at("temporal").at(0);
  const Table table = time_breakdown(one(trace_), {scope_, false});
  EXPECT_EQ(table.integers("rank")[0], expected.at("rank").get<std::int64_t>());
  EXPECT_NEAR(table.numbers("idle_s")[0], expected.at("idle_time(us)").get<double>() * 1e-6, 1e-9);
  EXPECT_NEAR(table.numbers("compute_s")[0], expected.at("compute_time(us)").get<double>() * 1e-6, 1e-9);
  EXPECT_NEAR(table.numbers("kernel_span_s")[0], expected.at("kernel_time(us)").get<double>() * 1e-6, 1e-9);
  EXPECT_NEAR(table.numbers("idle_pct")[0], expected.at("idle_time_pctg").get<double>(), 0.005001);
}

TEST_P(HolisticTraceAnalysis, Overlap) {
  const double expected = percent_of(expected_.at("overlap").at(0).at("comp_comm_overlap_pctg"));
  EXPECT_NEAR(overlap(one(trace_), {scope_, false}).numbers("overlap_pct")[0], expected, 0.005001);
}

TEST_P(HolisticTraceAnalysis, KernelBreakdown) {
  std::map<std::string, double> expected;
  for (const nlohmann::json& row : expected_.at("kernel_types")) {
    std::string kind = row.at("kernel_type");
    for (char& c : kind) c = static_cast<char>(std::tolower(c));
    if (row.at("sum") != 0) expected[kind] = row.at("sum").get<double>();
  }
  const Table table = kernel_breakdown(one(trace_), {scope_, false});
  ASSERT_EQ(table.rows(), expected.size());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    EXPECT_NEAR(table.numbers("total_s")[row] * 1e6, expected[std::string(table.texts("kind")[row])], 1e-3);
  }
}

TEST_P(HolisticTraceAnalysis, Kernels) {
  KernelsOptions options;
  options.scope = scope_;
  const Table table = kernels(one(trace_), options);
  EXPECT_EQ(table.rows(), expected_.at("n_kernel_rows_all").get<std::size_t>());
  for (const nlohmann::json& expected : expected_.at("kernels_head")) {
    const std::string name = expected.at("name");
    std::size_t row = 0;
    while (row < table.rows() && !table.texts("name")[row].starts_with(name)) ++row;
    ASSERT_LT(row, table.rows()) << name;
    EXPECT_NEAR(table.numbers("total_s")[row] * 1e6, expected.at("sum (us)").get<double>(), 1e-3);
    EXPECT_NEAR(table.numbers("mean_s")[row] * 1e6, expected.at("mean (us)").get<double>(), 1e-3);
    EXPECT_NEAR(table.numbers("max_s")[row] * 1e6, expected.at("max (us)").get<double>(), 1e-3);
    if (table.integers("calls")[row] > 1) {
      EXPECT_NEAR(table.numbers("std_s")[row] * 1e6, expected.at("stddev").get<double>(), 1e-3);
    }
  }
}

TEST_P(HolisticTraceAnalysis, IdleBreakdown) {
  IdleBreakdownOptions options;
  options.scope = scope_;
  const Table table = idle_breakdown(one(trace_), options).idle;
  std::map<std::pair<std::int64_t, std::string>, double> ours;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ours[{table.integers("stream")[row], std::string(table.texts("category")[row])}] =
        table.numbers("idle_s")[row] * 1e6;
  }
  for (const nlohmann::json& row : expected_.at("idle").at("t")) {
    const std::pair key{row.at("stream").get<std::int64_t>(), row.at("idle_category").get<std::string>()};
    EXPECT_NEAR(ours[key], row.at("idle_time").get<double>(), 1e-3) << key.first << ' ' << key.second;
  }
}

TEST_P(HolisticTraceAnalysis, QueueLength) {
  QueueLengthOptions options;
  options.scope = scope_;
  const auto [series, summary] = queue_length(one(trace_), options);
  ASSERT_EQ(summary.rows(), expected_.at("queue").size());
  for (std::size_t row = 0; row < summary.rows(); ++row) {
    // HTA counts points of the series, one for each launch and one for each start.
    const nlohmann::json& expected = expected_.at("queue").at(row);
    EXPECT_EQ(summary.integers("stream")[row], expected.at("stream").get<std::int64_t>());
    EXPECT_EQ(2 * summary.integers("launches")[row], expected.at("count").get<std::int64_t>());
    EXPECT_EQ(summary.integers("max")[row], expected.at("max").get<std::int64_t>());
  }
}

TEST_P(HolisticTraceAnalysis, Launches) {
  LaunchesOptions options;
  options.scope = scope_;
  const Table table = launches(one(trace_), options);
  const nlohmann::json& expected = expected_.at("launch").begin().value();
  ASSERT_EQ(table.rows(), expected.at("n").get<std::size_t>());
  const auto sum = [&](const char* column) {
    const Numbers& values = table.numbers(column);
    return std::accumulate(values.begin(), values.end(), 0.0) * 1e6;
  };
  EXPECT_NEAR(sum("host_s"), expected.at("cpu_sum").get<double>(), 0.1);
  EXPECT_NEAR(sum("device_s"), expected.at("gpu_sum").get<double>(), 0.1);
  EXPECT_NEAR(sum("delay_s"), expected.at("delay_sum").get<double>(), 0.1);
}

TEST_P(HolisticTraceAnalysis, Sequences) {
  for (const char* name : {"aten::linear", "aten::conv2d"}) {
    const std::string key = "seq_" + std::string(name);
    if (!expected_.contains(key)) continue;
    const nlohmann::json& expected = expected_.at(key).at("head");
    SequencesOptions options;
    options.scope = scope_;
    options.operator_name = name;
    const Table table = sequences(one(trace_), options);
    ASSERT_EQ(table.rows(), expected_.at(key).at("n").get<std::size_t>());
    for (std::size_t row = 0; row < expected.size(); ++row) {
      EXPECT_EQ(table.integers("count")[row], expected.at(row).at("count").get<std::int64_t>());
      EXPECT_NEAR(table.numbers("kernel_s")[row] * 1e6,
                  expected.at(row).at("GPU kernel duration (us)").get<double>(), 1e-3);
      EXPECT_NEAR(table.numbers("host_s")[row] * 1e6,
                  expected.at(row).at("CPU op duration (us)").get<double>(), 1e-3);
    }
  }
}

TEST_P(HolisticTraceAnalysis, Annotations) {
  AnnotationsOptions options;
  options.scope = scope_;
  options.on_device = false;
  const Table table = annotations(one(trace_), options).ranges;
  const nlohmann::json& expected = expected_.at("user_anno_cpu");
  EXPECT_EQ(table.rows(), expected.at("n").get<std::size_t>());
  for (const nlohmann::json& each : expected.at("head")) {
    std::size_t row = 0;
    while (row < table.rows() && table.texts("name")[row] != each.at("name").get<std::string>()) ++row;
    ASSERT_LT(row, table.rows());
    EXPECT_NEAR(table.numbers("total_s")[row] * 1e6, each.at("sum (us)").get<double>(), 1e-3);
    EXPECT_NEAR(table.numbers("max_s")[row] * 1e6, each.at("max (us)").get<double>(), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, HolisticTraceAnalysis, testing::Values("control", "df_index_resolver"),
                         [](const auto& each) { return std::string(each.param); });

nlohmann::json expected_of(const char* name) {
  std::ifstream stream(conformance_file("expected/hta.json"));
  return nlohmann::json::parse(stream).at("cases").at(name);
}

TEST(HolisticTraceAnalysisDiffers, WorkWhoseLaunchIsNotInTheFileIsKept) {
  const std::string file = conformance_file("kineto/test.json.gz");
  HEADRACE_NEEDS_FILE(file);
  const trace::Trace trace = trace::load_trace(file);
  ASSERT_GT(trace.correlation.without_launch(), 0U);
  const auto theirs = expected_of("test").at("temporal").at(0);
  const Table ours = time_breakdown(one(trace), {without_last_step(trace), false});
  EXPECT_GT(ours.numbers("compute_s")[0], theirs.at("compute_time(us)").get<double>() * 1e-6);
  EXPECT_LT(ours.numbers("idle_s")[0], theirs.at("idle_time(us)").get<double>() * 1e-6);
}

TEST(HolisticTraceAnalysisDiffers, TheLastStepIsKeptWhereItIsAllThere) {
  const std::string file = conformance_file("kineto/control.json.gz");
  HEADRACE_NEEDS_FILE(file);
  const trace::Trace trace = trace::load_trace(file);
  EXPECT_FALSE(last_step_is_cut_off(trace));
  const Table table = kernels(one(trace));
  const Integers& calls = table.integers("calls");
  EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), std::int64_t{0}), 9450);
}

TEST(HolisticTraceAnalysisDiffers, LaunchesOfGraphsTritonAndAmdAreThere) {
  const std::string amd = conformance_file("kineto/amd_mi250.json.gz");
  const std::string triton = conformance_file("kineto/triton_example.json.gz");
  const std::string graphs = conformance_file("kineto/test.json.gz");
  HEADRACE_NEEDS_FILE(graphs);
  EXPECT_EQ(launches(one(trace::load_trace(amd))).rows(), 16U);
  EXPECT_EQ(launches(one(trace::load_trace(triton))).rows(), 1U);
  const Table table = launches(one(trace::load_trace(graphs)));
  std::int64_t most_works = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.texts("name")[row] == "cudaGraphLaunch")
      most_works = std::max(most_works, table.integers("works")[row]);
  }
  EXPECT_GT(most_works, 50);
}

TEST(HolisticTraceAnalysisDiffers, WaitsAreNoWork) {
  const std::string file = conformance_file("kineto/simple_add.json.gz");
  HEADRACE_NEEDS_FILE(file);
  const trace::Trace trace = trace::load_trace(file);
  const Table ours = time_breakdown(one(trace));
  EXPECT_LE(ours.numbers("non_compute_s")[0], 39'293e-6);
  EXPECT_NEAR(ours.numbers("compute_s")[0], 10'670e-6, 1e-9);
}

}  // namespace
}  // namespace headrace::analysis::device
