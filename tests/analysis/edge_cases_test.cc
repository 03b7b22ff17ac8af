// Profiles that are short, empty, absurd or opaque, and rules that a simulated line does not reach.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "headrace/analysis/read/plausible.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/profile_json.h"
#include "support/simulation/labelled_lines.h"
#include "support/verdict_words.h"

namespace headrace::analysis {
namespace {

using profile::OperatorProfile;
using profile::Profile;

/// 100 steps of `wait_s` + `compute_s`, nothing known about the loader.
Profile sink_only(double wait_s, double compute_s) {
  Profile profile;
  profile.loader = "loader";
  profile.sink.steps = 101;
  profile.sink.step_s = wait_s + compute_s;
  profile.sink.compute_s = compute_s;
  profile.sink.wait_share = profile.sink.starved_share = wait_s / (wait_s + compute_s);
  profile.sink.getnext_wait = {100, wait_s, wait_s, wait_s, wait_s, wait_s};
  profile.sink.longest_waits = {{0, wait_s, 1}, {0, wait_s, 2}, {0, wait_s, 3}, {0, wait_s, 4}};
  profile.elapsed_s = 100 * (wait_s + compute_s);
  profile.host.cores = 2;
  profile.host.cpu_share = 0.1;
  return profile;
}

OperatorProfile inclusive(double demand_s, bool in_sink) {
  OperatorProfile op;
  op.name = "Stream";
  op.kind = "generator";
  op.fidelity = "inclusive";
  op.in_sink = in_sink;
  op.demand_s = demand_s;
  op.busy_s = 100 * demand_s;
  op.items = 100;
  op.items_per_batch = 1;
  op.service = {100, demand_s, demand_s, demand_s, demand_s, demand_s};
  return op;
}

TEST(EdgeCases, EmptyProfileIsUndeterminedWithAReason) {
  const Diagnosis diagnosis = diagnose(Profile{});
  EXPECT_EQ(diagnosis.kind, VerdictKind::undetermined);
  EXPECT_FALSE(diagnosis.reason.empty());
  EXPECT_TRUE(diagnosis.advice.empty());
}

TEST(EdgeCases, TooFewStepsAreUndetermined) {
  Profile profile = sink_only(0.01, 0.01);
  profile.sink.getnext_wait.count = 5;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::undetermined);
  profile = sink_only(1e-5, 1e-4);  // an epoch of 10 ms
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::undetermined);
}

TEST(EdgeCases, WithoutOperatorsTheVerdictNamesNone) {
  const Diagnosis diagnosis = diagnose(sink_only(0.02, 0.02));
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_FALSE(diagnosis.op);
  EXPECT_FALSE(diagnosis.cause);
  EXPECT_FALSE(diagnosis.reason.empty());
}

TEST(EdgeCases, OpaqueLoaderThatHandsOverSlowlyIsHealthy) {
  Profile profile = sink_only(1.1e-3, 0.0145);  // 7 % of the step: a torch loader's own hand-off
  profile.operators.push_back(inclusive(1.1e-3, false));
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_LT(diagnosis.confidence, 0.8);
}

TEST(EdgeCases, OpaqueLoaderThatStarvesIsNamedWithoutACause) {
  Profile profile = sink_only(0.03, 0.01);
  profile.operators.push_back(inclusive(0.03, false));
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_EQ(diagnosis.op, "Stream");
  EXPECT_FALSE(diagnosis.cause);
  EXPECT_TRUE(diagnosis.advice.empty());
}

TEST(EdgeCases, PlainGeneratorHasNoOverlap) {
  Profile profile = sink_only(0.03, 0.02);
  profile.operators.push_back(inclusive(0.03, true));
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.op, "Stream");
  EXPECT_EQ(diagnosis.cause, Cause::no_overlap);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "prefetch");
  EXPECT_EQ(diagnosis.advice.front().from, ParameterValue(0));
  EXPECT_NEAR(*diagnosis.advice.front().predicted_step_s, 0.03, 0.003);
  // Beside the training loop it still needs 30 ms a batch.
  EXPECT_EQ(diagnosis.next_bottleneck, "Stream");
}

/// A loop of nanoseconds: whatever passes a batch between threads costs more than the step.
TEST(EdgeCases, NothingIsAdvisedThatCostsMoreThanTheStep) {
  Profile profile = sink_only(2e-7, 1e-7);
  profile.sink.getnext_wait.count = 1'000'000;
  profile.elapsed_s = 0.3;
  profile.operators.push_back(inclusive(2e-7, true));
  profile.operators.front().cpu_s = profile.operators.front().busy_s;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  EXPECT_TRUE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.reason, "no parameter gains 5 %");
  profile.host.foreign_cpu_share = 0.47;
  EXPECT_EQ(diagnose(profile).reason, "no parameter gains 5 % while other processes use 47 % of the cores");
  // Nor where no number can be given.
  profile.host.foreign_cpu_share = profile.host.foreign_contention_share = 0.4;
  EXPECT_TRUE(diagnose(profile).advice.empty());
}

TEST(EdgeCases, AnIterableInWhichTheLoopOnlyWaitsIsNotBlamed) {
  Profile profile = sink_only(0.03, 0.02);
  profile.operators.push_back(inclusive(0.03, true));
  OperatorProfile& op = profile.operators.front();
  op.cpu_s = 0.02 * op.busy_s;
  const Diagnosis waits = diagnose(profile);
  EXPECT_EQ(waits.kind, VerdictKind::input_bound);
  EXPECT_FALSE(waits.op);
  EXPECT_FALSE(waits.cause);
  EXPECT_TRUE(waits.advice.empty());
  EXPECT_EQ(waits.summary, "the training loop waits for something that was not recorded");
  EXPECT_NE(waits.reason.find("Stream"), std::string::npos);
  // One that computes there is the loop's own work, as before.
  op.cpu_s = 0.9 * op.busy_s;
  EXPECT_EQ(diagnose(profile).cause, Cause::no_overlap);
}

TEST(EdgeCases, AGeneratorThatWaitsWhileUnseenThreadsComputeIsNotBlamed) {
  Profile profile = sink_only(0.03, 0.02);
  profile.sink.compute_cpu_s = 0.0005;
  profile.operators.push_back(inclusive(0.03, true));
  OperatorProfile& op = profile.operators.front();
  op.parameters.push_back({"prefetch", 0, 0.0, {}, false, profile::Quantity::capacity});
  op.executor = profile::Executor::thread;
  op.cpu_s = 0.02 * op.busy_s;
  profile.host.process_cpu_cores = 0.04;  // a server answers, or a disk
  EXPECT_EQ(diagnose(profile).cause, Cause::no_overlap);
  profile.host.process_cpu_cores = 0.4;
  const Diagnosis waits = diagnose(profile);
  EXPECT_FALSE(waits.op);
  EXPECT_TRUE(waits.advice.empty());
  std::string says;
  for (const Evidence& each : waits.evidence) says += each.says;
  EXPECT_NE(says.find("threads that were not recorded computed for 18.9 ms a step"), std::string::npos)
      << says;
  profile.sink.compute_cpu_s = 0.01;  // the step's own threads
  EXPECT_EQ(diagnose(profile).cause, Cause::no_overlap);
}

TEST(EdgeCases, PlainLoopGetsTheLinesThatPrefetch) {
  Profile profile = sink_only(0.03, 0.02);
  profile.operators.push_back(inclusive(0.03, true));
  const Diagnosis diagnosis = diagnose(profile);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_NE(diagnosis.advice.front().code.find("prefetch(2)"), std::string::npos);
}

TEST(EdgeCases, WorkerlessLoaderNeedsAsManyWorkersAsKeepUp) {
  Profile profile = sink_only(0.512, 0.031);  // G16
  profile.operators.push_back(inclusive(0.512, true));
  profile.operators.front().parameters.push_back(
      {"num_workers", 0, 0.0, {}, false, profile::Quantity::workers});
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::no_overlap);
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_NEAR(static_cast<double>(std::get<std::int64_t>(diagnosis.advice.front().to)), 17, 1);
}

TEST(EdgeCases, AnnotatedPartOfAGeneratorIsNotBlamedForTheRest) {
  Profile profile = sink_only(0.03, 0.02);
  OperatorProfile part = inclusive(0.002, true);
  part.name = "tokenize";
  part.fidelity = "exact";
  profile.operators = {part, inclusive(0.03, true)};
  EXPECT_EQ(diagnose(profile).op, "Stream");
  profile.operators.front().demand_s = 0.028;
  EXPECT_EQ(diagnose(profile).op, "tokenize");
}

TEST(EdgeCases, OperatorsOfOneThreadAddUp) {
  Profile profile = sink_only(0.02, 0.01);
  for (const char* name : {"read", "decode", "other"}) {
    OperatorProfile op = inclusive(0.015, false);
    op.name = name;
    op.fidelity = "exact";
    op.kind = "map";
    op.executor = "thread";
    op.segment = op.name == "other" ? 2 : 1;
    profile.operators.push_back(op);
  }
  profile.operators[1].demand_s = 0.0149;
  profile.operators[2].demand_s =
      0.02;  // the largest alone, but two thirds of what the other two take together
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.op, "read");
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
}

TEST(EdgeCases, StartUpLongerThanTheLoopIsSaid) {
  Profile profile = sink_only(1e-4, 0.01);
  profile.epochs = 4;
  profile.startup = {1, 0.9, 3};
  profile.operators.push_back(inclusive(1e-4, false));
  Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_EQ(diagnosis.cause, Cause::startup);
  EXPECT_TRUE(diagnosis.advice.empty());
  profile.operators.front().parameters.push_back(
      {"persistent_workers", 0, {}, {}, false, profile::Quantity::keeps_workers});
  diagnosis = diagnose(profile);
  ASSERT_EQ(diagnosis.advice.size(), 1u);
  EXPECT_EQ(diagnosis.advice.front().parameter, "persistent_workers");
}

TEST(EdgeCases, ReadyBatchesThatAreSlowToFetchAreAHandoff) {
  Profile profile = sink_only(0.004, 0.01);
  profile.sink.starved_share = 0.01;
  profile.sink.ready_share = 0.98;
  profile.sink.handoff_floor_s = 0.004;
  profile.queues.push_back({.name = "q",
                            .from = "read",
                            .to = "sink",
                            .from_operators = {},
                            .to_operators = {},
                            .to_sink = true,
                            .capacity = 2,
                            .occupancy = {0, 0, 1},
                            .mean = 2,
                            .full_share = 1,
                            .fidelity = {},
                            .parameters = {}});
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  EXPECT_EQ(diagnosis.op, "handoff");
}

/// A pipeline's map in one worker process, and the hand-off of its thread.
Profile process_map(double work_s, double handoff_s) {
  Profile profile = sink_only(work_s + handoff_s, 0.0005);
  for (const auto& [name, kind, demand_s] :
       {std::tuple{"decode", "map", work_s}, std::tuple{"decode.handoff", "handoff", handoff_s}}) {
    OperatorProfile op = inclusive(demand_s, false);
    op.name = name;
    op.kind = kind;
    op.fidelity = "exact";
    op.executor = op.kind == profile::OperatorKind::map ? "process" : "thread";
    op.segment = 1;
    op.workers = 1;
    op.states.busy = demand_s / (work_s + handoff_s);
    op.parameters.push_back({"decode.workers", 1, 1.0, {}, true, profile::Quantity::workers});
    profile.operators.push_back(op);
  }
  return profile;
}

TEST(EdgeCases, ItemsThatCostMoreToPassThanToMakeAreAHandoff) {
  const Diagnosis diagnosis = diagnose(process_map(0.001, 0.01));
  EXPECT_EQ(diagnosis.cause, Cause::handoff);
  EXPECT_EQ(diagnosis.op, "decode.handoff");
}

TEST(EdgeCases, WorkInAProcessThatIsCheapToPassIsNoHandoff) {
  const Diagnosis diagnosis = diagnose(process_map(0.01, 0.001));
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
  EXPECT_EQ(diagnosis.op, "decode");
}

TEST(EdgeCases, ABusyMachineHasAPredictionAndSaysHowToMeasureIt) {
  simulation::Line line{
      .stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .sleep_s = 0.03, .cpu_s = 0.01}},
      .compute_s = 0.01};
  Profile profile = simulation::simulate(line, 1);
  profile.host.foreign_cpu_share = profile.host.foreign_contention_share = 0.4;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.op, "decode");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_TRUE(diagnosis.advice.front().predicted_step_s);
  EXPECT_NE(diagnosis.advice.front().text.find("headrace tune SCRIPT measures it"), std::string::npos);
}

TEST(EdgeCases, ABusyNeighbourThatTakesNoCoreAwayDoesNotSaturateTheCpu) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .cpu_s = 0.04}},
                        .compute_s = 0.01};
  Profile profile = simulation::simulate(line, 1);
  profile.host.foreign_cpu_share = 0.5;
  profile.host.foreign_contention_share = 0.03;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.op, "decode");
  EXPECT_EQ(diagnosis.cause, Cause::too_few_workers);
}

TEST(EdgeCases, AdviceStopsWhereTheCoresDo) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .cpu_s = 0.04}},
                        .compute_s = 0.005,
                        .cores = 3};
  const Diagnosis diagnosis = diagnose(simulation::simulate(line, 1));
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "decode.workers");
  EXPECT_EQ(diagnosis.advice.front().to, ParameterValue(3));
}

TEST(EdgeCases, HealthyRunsHaveHeadroom) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 0.01}}, .compute_s = 0.03};
  const Diagnosis diagnosis = diagnose(simulation::simulate(line, 1));
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  ASSERT_TRUE(diagnosis.headroom_step_s);
  EXPECT_NEAR(*diagnosis.headroom_step_s, 0.01, 0.001);
}

TEST(Plausible, EveryFigureIsWithinTheBoundsOfItsKind) {
  Profile profile = sink_only(0.03, 0.02);
  profile.operators.push_back(inclusive(0.03, true));
  profile.operators.front().cpu_s = -5;
  profile.operators.front().states.busy = 7;
  profile.operators.front().per_worker.resize(1);
  profile.operators.front().per_worker.front().sequence = {{1, -2.0, -1}, {2, 1e40, 0.5}};
  profile.operators.front().per_worker.front().pid = -1;
  profile.sink.steps = 9'000'000'000'000'000'000ULL;
  profile.sink.sequence = {{-1, std::numeric_limits<double>::infinity()}};
  profile.host.foreign_cpu_share = 1e9;
  profile.handoff_estimate = profile::HandoffEstimate{-1, 1e300, -3};
  profile.windows.resize(1);
  profile.windows[0].wait_s = profile.windows[0].starved_s = 1e300;
  profile.windows[0].operators = {{7, -1, 0}};
  profile.windows[0].queues = {{-3, 2, 1e9}};
  profile.windows[0].host.cpu_share = -1;
  profile.host.process_cpu_cores = 1e300;
  profile.device = profile::DeviceProfile{};
  profile.device->window_s = 2;
  profile.device->idle_s = 5;
  profile.device->steps = profile::DeviceSteps{};
  profile.device->steps->steps = 4;
  profile.device->steps->sequence.resize(1);
  profile.device->steps->sequence[0].communication_overlap_s = 1;
  const Profile bounded = plausible(profile);
  const profile::Window& window = bounded.windows.front();
  EXPECT_LE(window.wait_s, 3e8);
  EXPECT_EQ(window.operators.front().busy_share, 1);
  EXPECT_EQ(window.operators.front().demand_s, -1) << "unknown, as is anything below 0";
  EXPECT_FALSE(window.host.cpu_share);
  EXPECT_EQ(bounded.host.process_cpu_cores, 1e6);
  EXPECT_EQ(bounded.device->idle_s, 2);
  EXPECT_EQ(bounded.device->steps->steps, 0U);  // of no whole steps
  EXPECT_EQ(bounded.device->steps->sequence[0].communication_overlap_s, 0);
  EXPECT_FALSE(bounded.operators.front().cpu_s);
  EXPECT_EQ(bounded.operators.front().states.busy, 1);
  EXPECT_EQ(bounded.operators.front().per_worker.front().sequence[0].wall_s, 0);
  EXPECT_LT(bounded.operators.front().per_worker.front().sequence[0].cpu_s, 0);  // not taken
  EXPECT_EQ(bounded.operators.front().per_worker.front().sequence[1].cpu_s, 0.5);
  EXPECT_LE(bounded.operators.front().per_worker.front().sequence[1].wall_s, 3e8);
  EXPECT_EQ(bounded.operators.front().per_worker.front().pid, -1);  // a name, not an amount
  EXPECT_LE(bounded.sink.steps, 1'000'000'000'000'000ULL);
  EXPECT_EQ(bounded.sink.sequence.front().compute_s, 0);
  EXPECT_EQ(bounded.host.foreign_cpu_share, 1);
  EXPECT_EQ(bounded.handoff_estimate->message_bytes, 0);
  // What is plausible stays as it is, to the last bit.
  const Profile sane = sink_only(0.03, 0.02);
  EXPECT_EQ(profile::profile_to_json(plausible(sane)), profile::profile_to_json(sane));
}

TEST(Plausible, FiguresThatTheRunHadNoTimeForGetNoVerdict) {
  Profile profile = sink_only(0.03, 0.02);
  profile.operators.push_back(inclusive(0.03, true));
  EXPECT_EQ(contradiction(profile), "");
  profile.operators.front().demand_s = 3e6;  // a flipped byte
  const Diagnosis damaged = diagnose(profile);
  EXPECT_EQ(damaged.kind, VerdictKind::undetermined);
  EXPECT_TRUE(damaged.advice.empty());
  EXPECT_NE(damaged.reason.find("Stream.demand_s is "), std::string::npos) << damaged.reason;
  profile = sink_only(0.03, 0.02);
  profile.windows.resize(2);
  profile.windows[1].compute_s = 2e6;
  EXPECT_NE(diagnose(profile).reason.find("the windows' computes is "), std::string::npos);
  profile = sink_only(0.03, 0.02);
  profile.sink.getnext_wait.count = 9'000'000'000'000'000ULL;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::undetermined);
}

/// Every number of a profile, one at a time, set to something absurd.
TEST(EdgeCases, AbsurdNumbersNeverBreakAVerdict) {
  simulation::Line line{
      .stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .workers = 2, .sleep_s = 0.04}},
      .compute_s = 0.01,
      .steps = 40};
  const std::string text = profile::profile_to_json(simulation::simulate(line, 1));
  for (const char* absurd : {"-1", "1e300", "0", "null", "-1e-300"}) {
    for (std::size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
      const std::size_t end = text.find_first_of(",}]", at);
      if (std::string("{[\"tfn").find(text[at + 1]) != std::string::npos || at % 7 != 0) continue;
      const std::string changed = text.substr(0, at + 1) + absurd + text.substr(end);
      const Diagnosis diagnosis = diagnose(profile::profile_from_json(changed));
      ASSERT_TRUE(diagnosis.confidence >= 0 && diagnosis.confidence <= 1) << absurd << " at " << at;
      ASSERT_TRUE(diagnosis.share_of_step >= 0 && diagnosis.share_of_step <= 1) << absurd << " at " << at;
    }
  }
}

TEST(EdgeCases, NotANumberEverywhere) {
  Profile profile = sink_only(0.02, 0.02);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  profile.operators.push_back(inclusive(nan, true));
  profile.operators.back().cpu_s = nan;
  profile.host.gil_share = profile.host.cpu_share = nan;
  profile.windows.resize(5);
  profile.windows[1].wait_s = nan;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::input_bound);
  profile.sink.step_s = profile.sink.wait_share = nan;
  EXPECT_EQ(diagnose(profile).kind, VerdictKind::undetermined);
}

TEST(EdgeCases, FiveHundredOperators) {
  Profile profile = sink_only(0.02, 0.02);
  for (int i = 0; i < 500; ++i) {
    OperatorProfile op = inclusive(i == 250 ? 0.04 : 0.001, false);
    op.name = "op" + std::to_string(i);
    op.fidelity = "exact";
    op.kind = "map";
    profile.operators.push_back(op);
  }
  EXPECT_EQ(diagnose(profile).op, "op250");
}

/// A verdict is a pure function of the recorded figures: what was saved gives what was said.
TEST(DiagnosisJson, SavedProfileGivesTheSameVerdict) {
  for (const simulation::LineClass& each : simulation::line_classes()) {
    simulation::Random random(11);
    const Profile profile = simulation::simulate(each.draw(random).line, 11);
    const Profile read = profile::profile_from_json(profile::profile_to_json(profile));
    EXPECT_EQ(diagnosis_to_json(diagnose(profile)), diagnosis_to_json(diagnose(read))) << each.name;
  }
}

TEST(DiagnosisJson, HasTheNamesThatReadersLookFor) {
  simulation::Line line{.stages = {{.name = "read", .sleep_s = 1e-3}, {.name = "decode", .sleep_s = 0.04}},
                        .compute_s = 0.01};
  const std::string text = diagnosis_to_json(diagnose(simulation::simulate(line, 1)));
  for (const char* key :
       {"\"kind\"", "\"operator\"", "\"cause\"", "\"share_of_step\"", "\"from\":1,", "\"next_bottleneck\""}) {
    EXPECT_NE(text.find(key), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace headrace::analysis
