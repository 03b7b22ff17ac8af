#include "../../src/profile/snapshot_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::profile {
namespace {

CellFigures cell(std::uint32_t worker, double busy_ns, double cpu_share) {
  CellFigures made;
  made.worker = worker;
  made.busy_ns = busy_ns;
  made.sampled_wall_ns = 100;
  made.sampled_cpu_ns = 100 * cpu_share;
  return made;
}

TEST(RunQueueShares, ByBusyTimeWithinWhatWasOffACore) {
  SegmentFigures figures;
  figures.workers.resize(3);
  figures.workers[0].run_queue_ns = 600;
  figures.workers[1].run_queue_ns = 5000;
  figures.cells = {cell(0, 1000, 0.2), cell(0, 1000, 0.9), cell(0, 1000, 0.5), cell(1, 1000, 0.5),
                   cell(2, 1000, 0.5)};
  const std::vector<double> waits_ns = run_queue_waits_ns(figures);
  ASSERT_EQ(waits_ns.size(), 5U);
  EXPECT_NEAR(waits_ns[0], 250, 1e-6);
  EXPECT_NEAR(waits_ns[1], 100, 1e-6);  // the rest of its 200 goes to the others
  EXPECT_NEAR(waits_ns[2], 250, 1e-6);
  EXPECT_NEAR(waits_ns[3], 500, 1e-6);  // it also waited between two items
  EXPECT_EQ(waits_ns[4], 0);
}

TEST(RunQueueShares, ACellWithoutCpuTimesMayHaveWaitedAllTheTime) {
  SegmentFigures figures;
  figures.workers.resize(1);
  figures.workers[0].run_queue_ns = 900;
  figures.cells = {cell(0, 1000, 0)};
  figures.cells[0].sampled_wall_ns = 0;
  EXPECT_NEAR(run_queue_waits_ns(figures)[0], 900, 1e-6);
}

}  // namespace
}  // namespace headrace::profile
