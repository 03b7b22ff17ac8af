#include <gtest/gtest.h>

#include <vector>

#include "../../src/profile/snapshot_parts.h"

namespace headrace::profile {
namespace {

// A loop of 10 s over four epochs, in each of which a new process was worker 0 for 2.5 s, busy for 2 s.
TEST(WorkerRows, WorkersOfSeveralEpochsAreOneOfTheWholeLoop) {
  std::vector<WorkerProfile> rows(4);
  for (WorkerProfile& row : rows) {
    row.worker_id = 0;
    row.items = 5;
    row.busy_s = 2;
    row.states = {.busy = 0.2, .blocked_in = 0.01, .blocked_out = 0.03, .idle = 0.76};
  }
  merge_worker_rows(rows);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].items, 20U);
  EXPECT_DOUBLE_EQ(rows[0].busy_s, 8);
  EXPECT_NEAR(rows[0].states.busy, 0.8, 1e-12);
  EXPECT_NEAR(rows[0].states.blocked_in, 0.04, 1e-12);
  EXPECT_NEAR(rows[0].states.blocked_out, 0.12, 1e-12);
  EXPECT_NEAR(rows[0].states.idle, 0.04, 1e-12);
}

}  // namespace
}  // namespace headrace::profile
