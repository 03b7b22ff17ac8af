#include "headrace/analysis/device/device_idle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "analysis/device/trace_builder.h"
#include "analysis/device/two_steps.h"
#include "headrace/analysis/device/time_breakdown.h"
#include "trace/conformance_data.h"

namespace headrace::analysis::device {
namespace {

void expect_parts_sum_to_idle(const Table& steps) {
  for (std::size_t row = 0; row < steps.rows(); ++row) {
    double sum = 0;
    for (const char* part : {"input_s", "launch_s", "communication_s", "copy_s", "kernel_gap_s", "unknown_s"})
      sum += steps.numbers(part)[row];
    EXPECT_NEAR(sum, steps.numbers("idle_s")[row], 1e-12);
  }
}

TEST(DeviceIdle, ChargesEachMomentToOneCause) {
  const trace::Trace trace = two_steps().build();
  const auto [steps, total] = device_idle(trace, loader_waits(trace));
  expect_parts_sum_to_idle(steps);
  EXPECT_EQ(steps.integers("step"), (Integers{0, 1}));
  EXPECT_EQ(steps.numbers("window_s"), (Numbers{130e-6, 80e-6}));
  EXPECT_EQ(steps.numbers("idle_s"), (Numbers{80e-6, 36e-6}));
  EXPECT_EQ(steps.numbers("input_s"), (Numbers{30e-6, 20e-6}));
  EXPECT_EQ(steps.numbers("launch_s"), (Numbers{3e-6, 5e-6}));
  EXPECT_EQ(steps.numbers("communication_s"), (Numbers{30e-6, 5e-6}));
  EXPECT_EQ(steps.numbers("copy_s"), (Numbers{5e-6, 0}));
  EXPECT_EQ(steps.numbers("kernel_gap_s"), (Numbers{12e-6, 6e-6}));
  EXPECT_EQ(steps.numbers("unknown_s"), (Numbers{0, 0}));
  EXPECT_EQ(total.texts("cause")[0], "input");
  EXPECT_DOUBLE_EQ(total.numbers("idle_s")[0], 50e-6);
  EXPECT_DOUBLE_EQ(total.numbers("idle_pct")[0], 100.0 * 50 / 116);
}

TEST(DeviceIdle, WaitsAfterTheLaunchAreNotTheInputs) {
  const trace::Trace trace = TraceBuilder()
                                 .call("cudaLaunchKernel", 1, 0, 2)
                                 .kernel("a", 1, 0, 10)
                                 .call("cudaLaunchKernel", 2, 20, 2)
                                 .kernel("b", 2, 100, 10)
                                 .build();
  const Table steps = device_idle(trace, std::vector<Interval>{{15'000, 90'000}}).steps;
  expect_parts_sum_to_idle(steps);
  EXPECT_EQ(steps.integers("step"), (Integers{-1}));
  EXPECT_EQ(steps.numbers("launch_s"), (Numbers{5e-6}));
  EXPECT_EQ(steps.numbers("input_s"), (Numbers{5e-6}));
  EXPECT_EQ(steps.numbers("unknown_s"), (Numbers{80e-6}));
}

TEST(DeviceIdle, WithoutALaunchOnlyTheWaitsTell) {
  const trace::Trace trace = TraceBuilder().kernel("a", 0, 0, 10).kernel("b", 0, 50, 10).build();
  // Waits in any order, also those that overlap.
  const Table steps = device_idle(trace, std::vector<Interval>{{35'000, 45'000}, {20'000, 40'000}}).steps;
  EXPECT_EQ(steps.numbers("input_s"), (Numbers{25e-6}));
  EXPECT_EQ(steps.numbers("unknown_s"), (Numbers{15e-6}));
  const Table without = device_idle(trace, {}).steps;
  EXPECT_EQ(without.numbers("input_s"), (Numbers{0}));
  EXPECT_EQ(without.notes.size(), 1U);
}

TEST(DeviceIdle, NoWorkOnADeviceIsNoRow) {
  const auto [steps, total] = device_idle(TraceBuilder().step(0, 0, 10).build(), {});
  EXPECT_EQ(steps.rows(), 0U);
  EXPECT_EQ(total.rows(), 0U);
  EXPECT_EQ(steps.notes, (std::vector<std::string>{"rank 0 has no work on a device"}));
}

TEST(DeviceIdle, FindsTheInputThatHoldsATrainingUp) {
  const std::string slow_file = trace::conformance_file("kineto/resnet50_workers0.json.gz");
  const std::string fast_file = trace::conformance_file("kineto/resnet50_workers4.json.gz");
  HEADRACE_NEEDS_FILE(slow_file);
  const auto input_share = [](const std::string& file) {
    const trace::Trace trace = trace::load_trace(file);
    const auto [steps, total] = device_idle(trace, loader_waits(trace));
    expect_parts_sum_to_idle(steps);
    double input_s = 0;
    double window_s = 0;
    for (std::size_t row = 0; row < steps.rows(); ++row) {
      input_s += steps.numbers("input_s")[row];
      window_s += steps.numbers("window_s")[row];
    }
    return input_s / window_s;
  };
  // The TensorBoard plugin finds 33.4 % and 0.8 % of the step in the loader.
  EXPECT_NEAR(input_share(slow_file), 0.334, 0.02);
  EXPECT_LT(input_share(fast_file), 0.02);
}

}  // namespace
}  // namespace headrace::analysis::device
