#include "headrace/profile/profile_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "headrace/profile/errors.h"
#include "headrace/profile/json_fields.h"

namespace headrace::profile {
namespace {

Profile full_profile() {
  Profile profile;
  profile.loader = "train \"α\"\n";
  profile.rank = 3;
  profile.settings = {{"framework", "torch"}, {"num_workers", "4"}, {"prefetch_factor", "None"}};
  profile.elapsed_s = 0.1 + 0.2;  // no short decimal
  profile.epochs = 2;
  profile.startup = {1.5, 0.25, 0.125};
  profile.sink.steps = std::numeric_limits<std::uint64_t>::max();
  profile.sink.quiet_compute_s = 1e-308;
  profile.sink.longest_waits = {{1, 2, 3}};
  profile.sink.sequence = {{0.1, 0.2}, {0.1, 0.2, 0.15, 0.05, 0.01}};
  profile.sink.marked = MarkedSteps{700, 782, 650, 0.3, 0.1, 0.05};
  OperatorProfile op;
  op.name = "decode";
  op.cpu_s = 0.7;
  op.parameters = {{"decode.workers", 2, 1.0, std::nullopt, true, Quantity::workers}};
  op.transfer = Transfer{};
  op.transfer->copies = 3;
  op.transfer->bytes = 1ULL << 60;
  op.transfer->bytes_per_s = 1.5e9;
  WorkerProfile worker;
  worker.pid = -5;
  worker.sequence = {{7, 0.1, -1}};
  worker.worker_id = 1;
  worker.shard = "2 of 4";
  op.per_worker = {worker};
  profile.operators = {op};
  QueueProfile queue;
  queue.from = "decode";
  queue.from_operators = {0};
  queue.to = "sink";
  queue.to_sink = true;
  queue.occupancy = {0.25, 0.75};
  profile.queues = {queue};
  profile.stall_ledger = {{"in_service", "decode", 1, 0.5}, {"unknown", "", 1, 0.5}};
  profile.handoff = Handoff{};
  profile.handoff->batches = 100;
  profile.handoff->message_bytes = 6.4e7;
  profile.handoff->receive_cpu_s = 1e-3;
  Window window;
  window.operators = {{0.5, 0.1, 3}};
  window.queues = {{1, 0.5, 0.5}};
  profile.windows = {window};
  profile.host.memory = 1LL << 40;
  profile.notes = {"something was not recorded"};
  return profile;
}

TEST(ProfileJson, ReadsBackBitForBit) {
  const std::string text = profile_to_json(full_profile());
  const Profile read = profile_from_json(text);
  EXPECT_EQ(profile_to_json(read), text);
  EXPECT_EQ(read.elapsed_s, 0.1 + 0.2);
  EXPECT_EQ(read.sink.steps, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read.operators[0].per_worker[0].pid, -5);
  EXPECT_EQ(read.stall_ledger[0].op, "decode");
  EXPECT_EQ(read.stall_ledger[1].op, "");
}

TEST(ProfileJson, EndsOfQueuesAreFoundByNameInOlderReports) {
  const Profile read = profile_from_json(R"({"operators":[{"name":"a"},{"name":"ab"},{"name":"b"}],)"
                                         R"("queues":[{"from":"a, ab","to":"b"},{"from":"b","to":"sink"},)"
                                         R"({"from":"b","to":"a","to_operators":[1]}]})");
  EXPECT_EQ(read.queues[0].from_operators, (std::vector<int>{0, 1}));
  EXPECT_EQ(read.queues[0].to_operators, (std::vector<int>{2}));
  EXPECT_FALSE(read.queues[0].to_sink);
  EXPECT_EQ(read.queues[1].from_operators, (std::vector<int>{2}));
  EXPECT_TRUE(read.queues[1].to_operators.empty());
  EXPECT_TRUE(read.queues[1].to_sink);
  // What is said in places is taken as it is.
  EXPECT_EQ(read.queues[2].to_operators, (std::vector<int>{1}));
  EXPECT_TRUE(read.queues[2].from_operators.empty());
}

TEST(ProfileJson, NamesAreThoseOfTheApi) {
  const nlohmann::json tree = to_json(full_profile());
  EXPECT_EQ(tree["stall_ledger"][0]["operator"], "decode");
  EXPECT_TRUE(tree["stall_ledger"][1]["operator"].is_null());
  EXPECT_EQ(tree["queues"][0]["from"], "decode");
  EXPECT_TRUE(tree["host"]["gil_share"].is_null());
  EXPECT_TRUE(tree["sink"]["getnext_wait"]["p99_s"].is_number());
}

TEST(ProfileJson, ACopyToADeviceHasItsFigures) {
  const nlohmann::json tree = to_json(full_profile());
  const nlohmann::json& transfer = tree["operators"][0]["transfer"];
  EXPECT_EQ(transfer["copies"], 3);
  EXPECT_EQ(transfer["bytes"], 1ULL << 60);
  EXPECT_EQ(transfer["bytes_per_s"], 1.5e9);
  EXPECT_TRUE(transfer["pinned_share"].is_null());
  const Profile read = profile_from_tree(tree);
  ASSERT_TRUE(read.operators[0].transfer.has_value());
  EXPECT_EQ(read.operators[0].transfer->bytes, 1ULL << 60);
  Profile nothing_copied;
  nothing_copied.operators.resize(1);
  EXPECT_TRUE(to_json(nothing_copied)["operators"][0]["transfer"].is_null());
}

TEST(ProfileJson, RequestsReadBack) {
  Profile profile = full_profile();
  Remote& remote = profile.operators[0].remote.emplace();
  remote.requests = 7;
  remote.unavailable = 2;
  remote.load = {{5, 2.5, 0.06, 5, 1, 1000, 0.001}};
  remote.answer_by_pause = {-0.9, 0.1, 0.002};
  const Profile read = profile_from_tree(to_json(profile));
  ASSERT_TRUE(read.operators[0].remote);
  EXPECT_EQ(read.operators[0].remote->unavailable, 2U);
  EXPECT_EQ(read.operators[0].remote->load[0].waiting, 2.5);
  EXPECT_EQ(read.operators[0].remote->answer_by_pause->slope, -0.9);
  EXPECT_FALSE(read.operators[0].remote->transfer_by_load);
  EXPECT_FALSE(read.host.remote);
}

TEST(ProfileJson, MarkedStepsReadBackAndMayBeMissing) {
  nlohmann::json tree = to_json(full_profile());
  EXPECT_TRUE(tree["sink"]["sequence"][0]["tail_s"].is_null());
  EXPECT_EQ(tree["sink"]["marked"]["of_steps"], 782);
  const Profile read = profile_from_tree(tree);
  EXPECT_FALSE(read.sink.sequence[0].before_forward_s);
  EXPECT_EQ(read.sink.sequence[1].cpu_s, 0.15);
  EXPECT_EQ(read.sink.sequence[1].before_forward_s, 0.05);
  ASSERT_TRUE(read.sink.marked);
  EXPECT_EQ(read.sink.marked->tail_steps, 650u);
  EXPECT_EQ(read.sink.marked->forward_backward_s, 0.1);
  tree["sink"].erase("marked");  // a report of before steps were marked
  EXPECT_FALSE(profile_from_tree(tree).sink.marked);
}

TEST(ProfileJson, StepsOfADeviceTraceReadBack) {
  Profile profile = full_profile();
  profile.device = DeviceProfile{};
  EXPECT_FALSE(profile_from_tree(to_json(profile)).device->steps);
  profile.device->rank = 3;
  profile.device->step_notes = {"rank 3: the last step is cut off and left out"};
  profile.device->steps = DeviceSteps{1, 2, 1, 0.02, 0.03, 0.01, 0.008, 0.006, {}, {}, "forward", "", {}};
  profile.device->steps->sequence = {{7, 0.02, 0.03, 0.01, 0.06, 0.008, 0.006},
                                     {8, std::nullopt, std::nullopt, std::nullopt, 0.05, 0, 0}};
  const nlohmann::json tree = to_json(profile);
  EXPECT_TRUE(tree["device"]["steps"]["sequence"][1]["tail_s"].is_null());
  const DeviceProfile read = *profile_from_tree(tree).device;
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.step_notes, profile.device->step_notes);
  EXPECT_EQ(read.steps->fp_point, "forward");
  EXPECT_EQ(read.steps->communication_overlap_s, 0.006);
  EXPECT_EQ(read.steps->sequence[0].step, 7);
  EXPECT_EQ(read.steps->sequence[0].iteration_gap_s, 0.02);
  EXPECT_FALSE(read.steps->sequence[1].iteration_gap_s);
}

TEST(ProfileJson, SettingsAreAnObject) {
  const nlohmann::json tree = to_json(full_profile());
  EXPECT_EQ(tree["settings"]["num_workers"], "4");
  const Profile read = profile_from_tree(tree);
  ASSERT_EQ(read.settings.size(), 3u);
  EXPECT_EQ(read.settings[1].parameter, "num_workers");
  EXPECT_EQ(read.settings[1].value, "4");
  EXPECT_EQ(to_json(Profile{})["settings"], nlohmann::json::object());
}

TEST(ProfileJson, ReportsOfBeforeWorkersHadNumbersStillRead) {
  nlohmann::json tree = to_json(full_profile());
  tree.erase("settings");
  tree.erase("handoff");
  tree["operators"][0]["per_worker"][0].erase("worker_id");
  tree["operators"][0]["per_worker"][0].erase("shard");
  tree["operators"][0].erase("transfer");
  const Profile read = profile_from_tree(tree);
  EXPECT_TRUE(read.settings.empty());
  EXPECT_FALSE(read.handoff.has_value());
  EXPECT_FALSE(read.operators[0].per_worker[0].worker_id);
  EXPECT_EQ(read.operators[0].per_worker[0].shard, "");
  EXPECT_FALSE(read.operators[0].transfer.has_value());
}

TEST(ProfileJson, WhatIsNotFiniteIsNull) {
  Profile profile = full_profile();
  profile.elapsed_s = std::numeric_limits<double>::infinity();
  profile.host.cpu_share = std::numeric_limits<double>::quiet_NaN();
  const nlohmann::json tree = to_json(profile);
  EXPECT_TRUE(tree["elapsed_s"].is_null());
  EXPECT_TRUE(tree["host"]["cpu_share"].is_null());
  EXPECT_EQ(profile_from_tree(tree).elapsed_s, 0);
}

TEST(ProfileJson, MissingFieldsKeepTheirDefaults) {
  const Profile profile = profile_from_json(std::string_view(R"({"loader":"a","unknown_field":[1]})"));
  EXPECT_EQ(profile.loader, "a");
  EXPECT_TRUE(profile.operators.empty());
}

TEST(ProfileJson, WordsOfANewerVersionAreKept) {
  const std::string text = R"({"operators":[{"kind":"tokenize","executor":"fiber","fidelity":"guessed"},
                                            {"kind":"map","executor":"process","fidelity":"sampled"}],
                               "queues":[{"fidelity":"guessed"}],
                               "stall_ledger":[{"what":"page_fault"},{"what":"order"}],
                               "device":{"causes":[{"cause":"power"},{"cause":"copy"}]}})";
  const nlohmann::json tree = nlohmann::json::parse(text);
  const Profile profile = profile_from_tree(tree);
  EXPECT_EQ(profile.operators[0].kind.known(), std::nullopt);
  EXPECT_EQ(profile.operators[1].kind, OperatorKind::map);
  EXPECT_EQ(profile.operators[1].executor, Executor::process);
  EXPECT_EQ(profile.operators[1].fidelity, Fidelity::sampled);
  EXPECT_EQ(profile.stall_ledger[1].what, WaitReason::order);
  EXPECT_EQ(profile.device->causes[1].cause, IdleReason::copy);
  const nlohmann::json again = to_json(profile);
  const nlohmann::json flat = tree.flatten();
  for (const auto& [path, word] : flat.items())
    EXPECT_EQ(again.at(nlohmann::json::json_pointer(path)), word) << path;
}

TEST(ProfileJson, WrongTypesAreNamed) {
  const char* const wrong[] = {"[]",
                               "3",
                               R"({"rank":"a"})",
                               R"({"operators":{}})",
                               R"({"operators":[3]})",
                               R"({"operators":[{"name":1}]})",
                               R"({"operators":[{"kind":1}]})",
                               R"({"finished":0})",
                               R"({"settings":[]})",
                               R"({"settings":{"num_workers":4}})",
                               R"({"handoff":3})",
                               R"({"sink":[]})",
                               R"({"sink":{"marked":[]}})",
                               R"({"sink":{"sequence":[{"tail_s":"x"}]}})"};
  for (const char* text : wrong) EXPECT_THROW(profile_from_json(std::string_view(text)), FormatError) << text;
  try {
    profile_from_json(std::string_view(R"({"operators":[{},{"busy_s":"x"}]})"));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("operators[1].busy_s"), std::string::npos) << error.what();
  }
}

TEST(ProfileJson, BrokenTextSaysWhere) {
  const std::string text = profile_to_json(full_profile());
  for (std::size_t length = 0; length < text.size(); length += 13) {
    EXPECT_THROW(profile_from_json(std::string_view(text).substr(0, length)), FormatError) << length;
  }
  try {
    profile_from_json(std::string_view("{\"rank\": }"));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.offset(), 10u);
  }
}

TEST(ProfileJson, HostileText) {
  EXPECT_THROW(profile_from_json(std::string(100000, '[')), FormatError);
  EXPECT_THROW(profile_from_json(std::string_view(R"({"elapsed_s":1e999})")), FormatError);
  EXPECT_EQ(profile_from_json(std::string_view(R"({"rank":1e30,"epochs":-4})")).rank,
            std::numeric_limits<int>::max());
  EXPECT_EQ(profile_from_json(std::string_view(R"({"rank":1e30,"epochs":-4})")).epochs, 0u);
  Profile profile;
  profile.loader = "\xff\xfe";
  EXPECT_NO_THROW(profile_from_json(profile_to_json(profile)));
}

}  // namespace
}  // namespace headrace::profile
