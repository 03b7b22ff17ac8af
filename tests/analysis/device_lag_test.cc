// An asynchronous device works on while the loop waits for its next batch.
#include <gtest/gtest.h>

#include <string>

#include "headrace/analysis/simulate/engine.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/what_if/what_if.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

/// 10 ms a batch from two workers, and a step that the host has ordered after 1 ms.
profile::Profile recorded(double device_s, double host_s = 0.001) {
  const simulation::DataLoader loader{
      .parts = {{.name = "Images", .sleep_s = 0.0025}, {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
      .num_workers = 2,
      .compute_s = host_s,
      .cores = 8};
  profile::Profile profile = simulation::simulate(loader, 1);
  profile.sink.device_span_s = device_s;
  profile.sink.device_host_s = profile.sink.compute_s;
  profile.sink.device_steps = 30;
  return profile;
}

double most_speedup(const Diagnosis& diagnosis) {
  return diagnosis.evidence.front().figures.at("most_speedup");
}

TEST(DeviceLag, AnInputIsWorthWhatTheDeviceIdles) {
  const profile::Profile profile = recorded(0.008);
  ASSERT_NEAR(profile.sink.step_s, 0.010, 0.001);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_NEAR(most_speedup(diagnosis), profile.sink.step_s / 0.008, 0.05);
  EXPECT_NEAR(diagnosis.evidence.front().figures.at("device_lag_s"), 0.007, 1e-3);
  EXPECT_NE(diagnosis.evidence.front().says.find("the device"), std::string::npos);
}

TEST(DeviceLag, WithoutItTheWholeWaitCounts) {
  profile::Profile profile = recorded(0.008);
  profile.sink.device_steps = 0;
  profile.sink.device_span_s = profile.sink.device_host_s = std::nullopt;
  EXPECT_GT(most_speedup(diagnose(profile)), 5);
}

TEST(DeviceLag, ADeviceThatNeverRestsIsTheLimit) {
  const profile::Profile profile = recorded(0.0105);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_DOUBLE_EQ(diagnosis.share_of_step, 0);
  EXPECT_EQ(diagnosis.summary.find("the device is the limit"), 0u) << diagnosis.summary;
}

TEST(DeviceLag, AStepThatWaitsForItsDeviceIsComputeAlready) {
  const profile::Profile profile = recorded(0.0041, 0.004);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_NEAR(most_speedup(diagnosis), profile.sink.step_s / 0.004, 0.2);
  EXPECT_EQ(diagnosis.evidence.front().figures.count("device_lag_s"), 0u);
}

TEST(DeviceLag, AFewMarkedStepsTellNothing) {
  profile::Profile profile = recorded(0.0105);
  profile.sink.device_steps = 3;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::input_bound);
}

TEST(DeviceLag, MoreWorkersGainUpToTheDevice) {
  const profile::Profile profile = recorded(0.008);
  EXPECT_NEAR(what_if(profile, {{"num_workers", "8"}}).step_s, 0.008, 2e-4);
  EXPECT_NEAR(what_if(profile, {{"num_workers", "1"}}).step_s, 0.020, 0.002);
}

TEST(DeviceLag, WithoutWorkersTheDeviceComputesBesideTheLoader) {
  const profile::Profile profile = recorded(0.008);
  EXPECT_NEAR(what_if(profile, {{"num_workers", "0"}}).step_s, 0.021, 0.002);
}

TEST(DeviceQueue, TheHostRunsAheadAndThenWaitsForRoom) {
  DeviceQueue device(0.010);
  double now_s = 0;
  double waited_s = 0;
  for (int i = 0; i < 10; ++i) {
    const double began_s = now_s;
    now_s += 0.001;
    const double wait_s = device.put(began_s, now_s);
    now_s += wait_s;
    waited_s = wait_s;
  }
  EXPECT_NEAR(waited_s, 0.009, 1e-9);
  EXPECT_NEAR(now_s, 0.080, 1e-9) << "two steps are still in the queue";
  EXPECT_EQ(DeviceQueue(0).put(0, 1), 0);
}

}  // namespace
}  // namespace headrace::analysis
