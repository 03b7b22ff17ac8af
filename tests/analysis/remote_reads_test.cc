// Requests to a remote service: what limits them, and what a verdict advises.
#include "headrace/analysis/read/remote_reads.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/what_if/what_if.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using profile::OperatorProfile;
using profile::Profile;
using profile::Remote;
using profile::RemoteLoad;

constexpr double kAnswer_s = 0.02;
constexpr double kWaits = 0.95;  // share of the operator's time

OperatorProfile& reader(Profile& profile) {
  for (OperatorProfile& op : profile.operators) {
    if (op.name == "Objects") return op;
  }
  throw std::logic_error("no Objects");
}

/// Two workers of which each item is one answer of 20 ms, beside a step of 10 ms.
Profile reads(int workers = 2) {
  Profile profile = simulation::simulate({.parts = {{.name = "Objects", .sleep_s = kAnswer_s, .cpu_s = 0.001},
                                                    {.name = "collate", .cpu_s = 1e-4, .per_batch = true}},
                                          .num_workers = workers,
                                          .compute_s = 0.010,
                                          .cores = 4},
                                         1);
  OperatorProfile& op = reader(profile);
  Remote& remote = op.remote.emplace();
  remote.requests = remote.ok = remote.first_reads = 1000;
  remote.bytes = 20'000'000;
  remote.first_byte_s = 0.9 * kWaits * op.busy_s;
  remote.transfer_s = 0.1 * kWaits * op.busy_s;
  remote.latency = {1000, kAnswer_s, kAnswer_s, kAnswer_s, kAnswer_s, kAnswer_s};
  // However many requests wait: the same time.
  remote.first_byte_by_load = remote.transfer_by_load = {0.02, 0.05, 0.4};
  return profile;
}

/// The whole body of the answer came only every other time.
void break_half(OperatorProfile& op) {
  Remote& remote = *op.remote;
  remote.requests = 1000;
  remote.ok = remote.first_reads = remote.connection_errors = 500;
  remote.refused_s = 0.5 * (remote.first_byte_s + remote.transfer_s);
  remote.first_byte_s /= 2;
  remote.transfer_s /= 2;
}

void mostly_transfers(Remote& remote) { std::swap(remote.first_byte_s, remote.transfer_s); }

RemoteLimit limit_of(const Profile& profile) {
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    if (profile.operators[i].remote) return remote_reads(profile, static_cast<int>(i), {}).limit;
  }
  return RemoteLimit::kNone;
}

/// No parameter of the advice starts more workers or requests.
void expect_no_more_readers(const Profile& profile, const Diagnosis& diagnosis) {
  for (const Advice& advice : diagnosis.advice) EXPECT_EQ(advice.parameter, "") << advice.text;
  const WhatIf more = what_if(profile, {{"num_workers", "8"}});
  EXPECT_FALSE(more.known);
  EXPECT_NE(more.reason.find("more readers"), std::string::npos) << more.reason;
}

TEST(RemoteStorage, LatencyIsHiddenByMoreReaders) {
  const Profile profile = reads();
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
  EXPECT_EQ(diagnosis.cause, Cause::remote_storage);
  EXPECT_EQ(diagnosis.op, "Objects");
  ASSERT_FALSE(diagnosis.advice.empty());
  EXPECT_EQ(diagnosis.advice.front().parameter, "num_workers");
  EXPECT_GT(diagnosis.advice.front().speedup.value_or(0), 2);
  EXPECT_TRUE(what_if(profile, {{"num_workers", "8"}}).known);
}

TEST(RemoteStorage, AThrottledServiceGetsNoMoreReaders) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  remote.unavailable = remote.retries = 250;
  remote.requests = 1250;
  remote.backoff_s = 0.3 * reader(profile).busy_s;
  remote.first_byte_s *= 0.6;
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kThrottled);
  EXPECT_EQ(diagnosis.cause, Cause::remote_storage);
  EXPECT_NE(diagnosis.summary.find("refuses"), std::string::npos);
  expect_no_more_readers(profile, diagnosis);
  ASSERT_TRUE(diagnosis.advice.front().predicted_step_s);
  EXPECT_LT(*diagnosis.advice.front().predicted_step_s, 0.85 * profile.sink.step_s);
}

TEST(RemoteStorage, AnswersThatBreakOffAreNoLatency) {
  Profile profile = reads();
  break_half(reader(profile));
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kBroken);
  EXPECT_EQ(diagnosis.cause, Cause::remote_storage);
  EXPECT_NE(diagnosis.summary.find("fail"), std::string::npos);
  EXPECT_EQ(diagnosis.summary.find("latency of"), std::string::npos);
  expect_no_more_readers(profile, diagnosis);
}

TEST(RemoteStorage, ThoseThatAreRefusedAndCutAreNamedByMost) {
  Profile profile = reads();
  break_half(reader(profile));
  reader(profile).remote->unavailable = 600;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kThrottled);
  reader(profile).remote->unavailable = 400;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kBroken);
}

TEST(RemoteStorage, OneRefusalInAHundredIsNoThrottle) {
  Profile profile = reads();
  reader(profile).remote->unavailable = 10;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
  reader(profile).remote->connection_errors = 10;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
}

TEST(RemoteStorage, AFullLinkGivesEachReaderLess) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  mostly_transfers(remote);
  remote.transfer_by_load = {0.9, 0.1, 0.4};
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLink);
  EXPECT_EQ(diagnosis.cause, Cause::remote_storage);
  expect_no_more_readers(profile, diagnosis);
}

TEST(RemoteStorage, AConnectionsOwnRateIsNoFullLink) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  mostly_transfers(remote);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
}

TEST(RemoteStorage, AFewBodiesThatTakeNoTimeAreNoFullLink) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  mostly_transfers(remote);
  // A delayed acknowledgement of 40 ms, except for the first answer of each connection.
  remote.transfer_by_load = {0.41, 0.1, 0.17};
  RemoteLoad low{.transfers = 130, .transferring = 1.3, .bytes = 520'000, .transfer_s = 130 * 0.0417};
  RemoteLoad high{.transfers = 270, .transferring = 1.8, .bytes = 1'080'000, .transfer_s = 270 * 0.0422};
  remote.load = {low, high};
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
  remote.load.back().transfer_s *= 1.3;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLink);
}

TEST(RemoteStorage, AServerThatComputesAnswersMoreSlowlyWithMoreRequests) {
  Profile profile = reads();
  reader(profile).remote->first_byte_by_load = {0.9, 0.1, 0.4};
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kService);
  EXPECT_EQ(diagnosis.cause, Cause::remote_storage);
  expect_no_more_readers(profile, diagnosis);
}

TEST(RemoteStorage, WhereOneLoadWasSeenTheAdviceSaysSo) {
  Profile profile = reads();
  reader(profile).remote->first_byte_by_load.reset();
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
  EXPECT_NE(diagnosis.advice.front().text.find("if the service answers that many at once"),
            std::string::npos);
  EXPECT_GE(*diagnosis.advice.front().high, profile.sink.step_s);
}

TEST(RemoteStorage, AQueueInTheServiceShowsInThePausesBeforeRequests) {
  Profile profile = reads();
  reader(profile).remote->first_byte_by_load.reset();
  reader(profile).remote->answer_by_pause = {-0.95, 0.05, 0.001};
  EXPECT_EQ(limit_of(profile), RemoteLimit::kService);
  reader(profile).remote->answer_by_pause = {-0.95, 0.4, 0.001};
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
}

TEST(RemoteStorage, BodiesAtOneLoadGetNoPrediction) {
  Profile profile = reads();
  mostly_transfers(*reader(profile).remote);
  reader(profile).remote->transfer_by_load = {0.9, 0.1, 0.02};
  EXPECT_EQ(limit_of(profile), RemoteLimit::kLatency);
  EXPECT_FALSE(what_if(profile, {{"num_workers", "8"}}).known);
  for (const Advice& advice : diagnose(profile).advice) {
    EXPECT_TRUE(advice.parameter.empty() || !advice.predicted_step_s) << advice.text;
  }
}

TEST(RemoteStorage, AColdCacheIsTold) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  remote.first_reads = remote.repeated_reads = 500;
  remote.first_reads_s = 0.8 * kWaits * reader(profile).busy_s;
  remote.repeated_reads_s = 0.2 * kWaits * reader(profile).busy_s;
  const Diagnosis diagnosis = diagnose(profile);
  bool told = false;
  for (const Evidence& evidence : diagnosis.evidence)
    told |= evidence.says.find("a cold cache") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(RemoteStorage, AFewRequestsBesideTheWorkAreNoCause) {
  Profile profile = reads();
  Remote& remote = *reader(profile).remote;
  remote.first_byte_s *= 0.2;
  EXPECT_EQ(limit_of(profile), RemoteLimit::kNone);
  EXPECT_NE(diagnose(profile).cause, Cause::remote_storage);
}

TEST(RemoteStorage, ALoopThatDoesNotWaitIsHealthy) {
  Profile profile = reads(24);
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::not_input_bound);
  EXPECT_FALSE(diagnosis.cause);
}

}  // namespace
}  // namespace headrace::analysis
