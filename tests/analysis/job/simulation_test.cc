#include "headrace/analysis/job/simulation.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "headrace/profile/errors.h"

namespace headrace::analysis::job {
namespace {

using Type = OperationType;

Operation operation(Type type, std::int32_t dp_rank, std::int32_t stage, double start_s, double duration_s,
                    std::int64_t sequence = 0, std::int64_t step = 1) {
  Operation result{type, dp_rank, stage, step, start_s, duration_s, sequence};
  if (type == Type::forward_compute || type == Type::backward_compute) {
    result.chunk = 0;
    result.model_chunk = stage;
    result.micro_batch = static_cast<std::int32_t>(sequence);
  }
  return result;
}

/// Two data-parallel ranks of one stage: forward, backward, reduce-scatter, optimizer. Rank 1 computes 2 s longer.
Operations two_ranks() {
  return {operation(Type::forward_compute, 0, 0, 0, 1),      operation(Type::backward_compute, 0, 0, 1, 2),
          operation(Type::grads_reduce_scatter, 0, 0, 3, 3), operation(Type::optimizer, 0, 0, 6, 1),
          operation(Type::forward_compute, 1, 0, 0, 1),      operation(Type::backward_compute, 1, 0, 1, 4),
          operation(Type::grads_reduce_scatter, 1, 0, 5, 1), operation(Type::optimizer, 1, 0, 6, 1)};
}

/// Two stages and one micro-batch, stage 1 in need of 3 s each way and stage 0 of 1 s. Transfers take 0.5 s.
Operations two_stages() {
  return {operation(Type::forward_compute, 0, 0, 0, 1),    operation(Type::forward_send, 0, 0, 1, 0.5),
          operation(Type::forward_recv, 0, 1, 0, 1.5),     operation(Type::forward_compute, 0, 1, 1.5, 3),
          operation(Type::backward_compute, 0, 1, 4.5, 3), operation(Type::backward_send, 0, 1, 7.5, 0.5),
          operation(Type::backward_recv, 0, 0, 1.5, 6.5),  operation(Type::backward_compute, 0, 0, 8, 1)};
}

TEST(JobSimulation, WaitsOfACollectiveAreNoneOfItsTime) {
  const JobSimulation job(two_ranks());
  EXPECT_EQ(job.recorded_s(), std::vector<double>{7});
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{7});
  EXPECT_EQ(job.step_s(Selection::none()), std::vector<double>{6});  // backward takes 3 s on both
}

TEST(JobSimulation, ARankThatKeepsItsTimesCostsWhatItCosts) {
  const JobSimulation job(two_ranks());
  EXPECT_EQ(job.dp_ranks(), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(job.step_s({.dp_rank = 0}), std::vector<double>{6});
  EXPECT_EQ(job.step_s({.dp_rank = 1}), std::vector<double>{7});
  EXPECT_EQ(job.step_s({.workers = {{1, 0}}, .others = true}), std::vector<double>{6});
  EXPECT_EQ(job.step_s({.kind = "backward-compute"}), std::vector<double>{7});
  EXPECT_EQ(job.step_s({.kind = "forward-compute"}), std::vector<double>{6});
}

TEST(JobSimulation, StagesWaitForEachOther) {
  const JobSimulation job(two_stages());
  EXPECT_EQ(job.unpaired(), 0U);
  EXPECT_EQ(job.kinds(), (std::vector<std::string>{"backward-compute", "backward-pp-comm", "forward-compute",
                                                   "forward-pp-comm"}));
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{9});
  EXPECT_EQ(job.step_s(Selection::none()), std::vector<double>{9});  // 2 + 0.5 + 2 + 2 + 0.5 + 2 - 0
  EXPECT_EQ(job.step_s({.stage = 1}), std::vector<double>{11});
  EXPECT_EQ(job.step_s({.stage = 0}), std::vector<double>{7});
}

TEST(JobSimulation, TransfersAtTheEndsOfThePipelineCostNothing) {
  Operations operations = two_stages();
  operations.push_back(operation(Type::forward_recv, 0, 0, 0, 0));
  operations.push_back(operation(Type::forward_send, 0, 1, 4.5, 3));
  operations.push_back(operation(Type::backward_recv, 0, 1, 1, 3.5));
  operations.push_back(operation(Type::backward_send, 0, 0, 9, 4));
  const JobSimulation job(std::move(operations));
  EXPECT_EQ(job.unpaired(), 0U);
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{9});
}

TEST(JobSimulation, LaunchDelaysAreWhatTheRecordHasBetweenOperations) {
  Operations operations = two_ranks();
  for (Operation& each : operations) {
    if (each.type != Type::forward_compute) each.start_s += 0.25;  // before backward, on both ranks
  }
  const JobSimulation job(std::move(operations));
  EXPECT_EQ(job.recorded_s(), std::vector<double>{7.25});
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{7});
  EXPECT_EQ(job.step_s(Selection::all(), Delays::recorded), std::vector<double>{7.25});
}

TEST(JobSimulation, WaitsForTheInputCanBeTakenOut) {
  Operation waits = operation(Type::forward_compute, 0, 0, 4, 1);
  waits.input_s = 4;
  const JobSimulation job(
      {waits, operation(Type::backward_compute, 0, 0, 5, 2),
       operation(Type::grads_reduce_scatter, 0, 0, 7, 1), operation(Type::forward_compute, 1, 0, 0, 1),
       operation(Type::backward_compute, 1, 0, 1, 4), operation(Type::grads_reduce_scatter, 1, 0, 5, 3)});
  EXPECT_EQ(job.recorded_s(), std::vector<double>{8});
  EXPECT_EQ(job.step_s(Selection::all(), Delays::recorded), std::vector<double>{8});
  EXPECT_EQ(job.step_s(Selection::all(), Delays::without_input), std::vector<double>{6});
}

TEST(JobSimulation, EachStepIsSimulatedAlone) {
  Operations operations = two_ranks();
  for (Operation each : two_ranks()) {
    each.step = 7;
    each.start_s += 100;
    operations.push_back(each);
  }
  const JobSimulation job(std::move(operations));
  EXPECT_EQ(job.steps(), (std::vector<std::int64_t>{1, 7}));
  EXPECT_EQ(job.step_s(Selection::all()), (std::vector<double>{7, 7}));
}

TEST(JobSimulation, AMissingPartnerIsCountedAndCostsNothing) {
  Operations operations = two_stages();
  operations.erase(operations.begin() + 2);  // the receive of stage 1
  const JobSimulation job(std::move(operations));
  EXPECT_EQ(job.unpaired(), 1U);
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{7.5});  // stage 1 starts at once
}

TEST(JobSimulation, InterleavedChunksTakeTheirParametersAndPartners) {
  // One rank and stage with two chunks: chunk 1 needs what chunk 0 made, and its own parameters.
  Operations operations = {
      operation(Type::params_all_gather, 0, 0, 0, 1), operation(Type::params_all_gather, 0, 0, 1, 4, 1),
      operation(Type::forward_compute, 0, 0, 1, 1), operation(Type::forward_compute, 0, 0, 5, 1, 1)};
  operations[0].chunk = 0;
  operations[1].chunk = operations[3].chunk = operations[3].model_chunk = 1;
  const JobSimulation job(std::move(operations));
  EXPECT_EQ(job.step_s(Selection::all()), std::vector<double>{6});
}

TEST(JobSimulation, TransfersOfOneKernelWaitForEachOther) {
  // Stage 0 sends its second activations and receives its first gradients at once; stage 1 does the opposite.
  Operations operations = {
      operation(Type::forward_compute, 0, 0, 0, 1),    operation(Type::forward_send, 0, 0, 1, 1),
      operation(Type::forward_compute, 0, 0, 1, 6, 1), operation(Type::forward_send, 0, 0, 7, 1, 1),
      operation(Type::backward_recv, 0, 0, 7, 1),      operation(Type::backward_compute, 0, 0, 8, 2),
      operation(Type::forward_recv, 0, 1, 0, 2),       operation(Type::forward_compute, 0, 1, 2, 1),
      operation(Type::backward_compute, 0, 1, 3, 1),   operation(Type::backward_send, 0, 1, 4, 4),
      operation(Type::forward_recv, 0, 1, 4, 4, 1),    operation(Type::forward_compute, 0, 1, 8, 1, 1)};
  // Two kernels: the gradients are there at 5, before the second forward has ended at 7.
  EXPECT_EQ(JobSimulation(operations).step_s(Selection::all()), std::vector<double>{9});
  for (const std::size_t each : {3U, 4U, 9U, 10U}) operations[each].kernel = 1;
  EXPECT_EQ(JobSimulation(operations).step_s(Selection::all()), std::vector<double>{10});
}

TEST(JobSimulation, RefusesWhatItCannotSimulate) {
  EXPECT_THROW(JobSimulation({}), UsageError);
  EXPECT_THROW(JobSimulation({operation(Type::gc, 0, 0, std::numeric_limits<double>::quiet_NaN(), 1)}),
               UsageError);
  EXPECT_THROW(JobSimulation({operation(Type::gc, 0, 0, 0, -1)}), UsageError);
}

TEST(OperationType, NamesAreThoseOfFiles) {
  EXPECT_EQ(operation_type("separate-grads-all-reduce"), Type::separate_grads_all_reduce);
  EXPECT_EQ(operation_type("all-to-all"), std::nullopt);
  EXPECT_EQ(kind_of(Type::backward_recv), "backward-pp-comm");
  EXPECT_EQ(name_of(Type::gc), "gc");
}

TEST(OperationColumns, AreCheckedRowByRow) {
  OperationColumns columns;
  columns.type = {"gc", "optimizer"};
  columns.dp_rank = columns.stage = columns.step = {0, 1};
  columns.start_s = columns.duration_s = {0.5, 1.5};
  const Operations operations = operations_of(columns);
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[1].type, Type::optimizer);
  EXPECT_EQ(operations[1].stage, 1);
  EXPECT_EQ(operations[1].end_s(), 3);
  EXPECT_EQ(operations[1].micro_batch, -1);

  columns.chunk = {0};
  EXPECT_THROW(operations_of(columns), UsageError);
  columns.chunk = {0, std::int64_t{1} << 40};
  EXPECT_THROW(operations_of(columns), UsageError);
  columns.chunk.clear();
  columns.type[1] = "all-to-all";
  EXPECT_THROW(operations_of(columns), UsageError);
}

}  // namespace
}  // namespace headrace::analysis::job
