#include "headrace/timeline/merge.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "headrace/profile/annotation.h"
#include "headrace/profile/current.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/session.h"
#include "profile/scratch_folder.h"
#include "timeline/timeline_file.h"

namespace headrace::timeline {
namespace {

using metrics::Clock;
using profile::ScratchFolder;
using std::chrono::milliseconds;

/// A loop over a queue that one thread fills, recorded; the calls as the profiler would have seen them.
struct RecordedRun {
  std::string segment;
  std::vector<TimeRange> calls;  ///< Unix time

  explicit RecordedRun(const std::string& folder, int rank = 0, int batches = 6) {
    const auto session = profile::Session::open({folder, rank});
    profile::CurrentSession::set(session);
    auto queue = std::make_shared<profile::QueueHandle>("decoded \"jpeg\"", 4);
    profile::OperatorHandle decode("decode", "map", 0);
    auto loader = std::make_shared<profile::LoaderHandle>(session, "train", nullptr);
    {
      profile::LoopRecorder loop(loader, true);
      for (int batch = 0; batch < batches; ++batch) {
        const std::int64_t made_from = Clock::now_ns();
        std::thread([&] {
          decode.begin();
          std::this_thread::sleep_for(milliseconds(2));
          decode.end(false);
          queue->put(1, 0, true, "feed");
        }).join();
        metrics::WaitCharges charges;
        charges.made_from_ns = made_from;
        charges.made_until_ns = Clock::now_ns();
        const std::int64_t began = Clock::realtime_ns();
        loop.begin_wait();
        std::this_thread::sleep_for(milliseconds(1 + batch * batch % 7));
        queue->get(0, 0, true, nullptr);
        loop.end_wait(true, false, charges);
        calls.push_back({began, Clock::realtime_ns()});
        const profile::Annotation annotation("train\nstep");
        std::this_thread::sleep_for(milliseconds(3));
      }
    }
    profile::CurrentSession::set(nullptr);
    session->close();
    segment = folder + "/rank" + std::to_string(rank) + ".hrseg";
  }
};

/// A device trace of the same loop: the `__next__` ranges, and per step a launch and its kernel. The
/// profiler's clock is `shift_ns` ahead.
std::string device_trace(const RecordedRun& run, std::int64_t shift_ns, int rank = 0,
                         std::int64_t before = 1'000'000'000, bool collectives = false) {
  // Near the run: viewers keep time stamps as doubles.
  const std::int64_t base = run.calls.front().begin_ns - before;
  nlohmann::json events = nlohmann::json::array();
  const auto at = [&](std::int64_t unix_ns) { return static_cast<double>(unix_ns + shift_ns - base) / 1000; };
  events.push_back({{"ph", "M"},
                    {"name", "process_name"},
                    {"pid", 4711},
                    {"tid", 0},
                    {"ts", 0},
                    {"args", {{"name", "python"}}}});
  int correlation = 0;
  for (const TimeRange& call : run.calls) {
    ++correlation;
    events.push_back({{"ph", "X"},
                      {"cat", "user_annotation"},
                      {"name", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"},
                      {"pid", 4711},
                      {"tid", 4711},
                      {"ts", at(call.begin_ns)},
                      {"dur", static_cast<double>(call.end_ns - call.begin_ns) / 1000}});
    events.push_back({{"ph", "X"},
                      {"cat", "cuda_runtime"},
                      {"name", "cudaLaunchKernel"},
                      {"pid", 4711},
                      {"tid", 4711},
                      {"ts", at(call.end_ns + 500'000)},
                      {"dur", 10},
                      {"args", {{"correlation", correlation}}}});
    events.push_back({{"ph", "X"},
                      {"cat", "kernel"},
                      {"name", "sgemm"},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", at(call.end_ns + 900'000)},
                      {"dur", 100},
                      {"args", {{"correlation", correlation}, {"stream", 7}, {"device", 0}}}});
    if (collectives) {
      events.push_back({{"ph", "X"},
                        {"cat", "kernel"},
                        {"name", "ncclDevKernel_AllReduce_Sum_f32"},
                        {"pid", 0},
                        {"tid", 8},
                        {"ts", at(call.end_ns + 1'100'000)},
                        {"dur", 50},
                        {"args", {{"stream", 8}, {"device", 0}}}});
    }
    events.push_back({{"ph", "s"},
                      {"cat", "ac2g"},
                      {"name", "ac2g"},
                      {"id", correlation},
                      {"pid", 4711},
                      {"tid", 4711},
                      {"ts", at(call.end_ns + 500'000)}});
    events.push_back({{"ph", "f"},
                      {"bp", "e"},
                      {"cat", "ac2g"},
                      {"name", "ac2g"},
                      {"id", correlation},
                      {"pid", 0},
                      {"tid", 7},
                      {"ts", at(call.end_ns + 900'000)}});
  }
  const nlohmann::json document = {
      {"schemaVersion", 1},
      {"baseTimeNanoseconds", base},
      {"distributedInfo", {{"backend", "nccl"}, {"rank", rank}, {"world_size", 2}}},
      {"traceEvents", events}};
  return document.dump(1);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Merge, ARunAloneMakesATimeline) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run");
  const MergeResult merged =
      merge({.segments = {run.segment}, .traces = {}, .out = folder / "alone.json.gz"});
  EXPECT_FALSE(merged.clock_error_ns.has_value());
  const TimelineFile file(merged.path);
  file.expect_sound();
  const auto calls = file.ours("X", "GetNext");
  ASSERT_EQ(calls.size(), run.calls.size());
  const std::int64_t base = file.document.at("baseTimeNanoseconds");
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].at("args").at("batch"), i);
    EXPECT_NEAR(static_cast<double>(TimelineFile::ns(calls[i].at("ts")) + base - run.calls[i].begin_ns), 0,
                1e6);
    EXPECT_EQ(file.row_of(calls[i]), "GetNext");
  }
  EXPECT_EQ(file.ours("X", "decode").size(), run.calls.size());
  EXPECT_EQ(file.ours("X", "step").size(), run.calls.size());
  EXPECT_EQ(file.ours("X", "batch").size(), run.calls.size());
  EXPECT_EQ(file.ours("X", "train\nstep").size(), run.calls.size());
  EXPECT_FALSE(file.ours("C", "decoded \"jpeg\"").empty());
  EXPECT_EQ(file.ours("f").size(), run.calls.size()) << "one arrow per step";
  EXPECT_EQ(merged.slices, file.ours("X").size());
  struct stat info{};
  ASSERT_EQ(stat(merged.path.c_str(), &info), 0);
  EXPECT_EQ(merged.bytes, static_cast<std::uint64_t>(info.st_size));
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST(Merge, AFileThatEndsInJsonIsPlain) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run", 0, 2);
  const MergeResult merged = merge({.segments = {run.segment}, .traces = {}, .out = folder / "plain.json"});
  std::ifstream plain(merged.path);
  EXPECT_EQ(plain.get(), '{');
  EXPECT_EQ(TimelineFile(merged.path).ours("X", "GetNext").size(), 2U);
}

TEST(Merge, LaysTheRunOverTheDeviceTrace) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run");
  const std::string text = device_trace(run, 40'000'000);
  write_text(folder / "trace.json", text);
  const MergeResult merged =
      merge({.segments = {run.segment}, .traces = {folder / "trace.json"}, .out = folder / "merged.json.gz"});
  const TimelineFile file(merged.path);
  file.expect_sound();
  // The trace's own events, as they were.
  const nlohmann::json original = nlohmann::json::parse(text);
  for (std::size_t i = 0; i < original.at("traceEvents").size(); ++i)
    EXPECT_EQ(file.all[i], original.at("traceEvents")[i]);
  EXPECT_EQ(file.document.at("distributedInfo"), original.at("distributedInfo"));
  // 40 ms between the clocks are found and taken out.
  ASSERT_TRUE(merged.clock_error_ns.has_value());
  EXPECT_LT(*merged.clock_error_ns, 2'000'000);
  const auto calls = file.ours("X", "GetNext");
  ASSERT_EQ(calls.size(), run.calls.size());
  std::size_t call = 0;
  for (const auto& event : file.all) {
    if (!std::string(event.at("name")).starts_with("enumerate")) continue;
    const std::int64_t apart = TimelineFile::ns(event.at("ts")) - TimelineFile::ns(calls[call++].at("ts"));
    EXPECT_LE(std::abs(apart), *merged.clock_error_ns + 100'000);
  }
  // Arrows end in the first kernel of their step.
  const auto ends = file.ours("f");
  ASSERT_EQ(ends.size(), run.calls.size());
  for (const auto& end : ends) {
    EXPECT_EQ(end.at("pid"), 0);
    EXPECT_EQ(end.at("tid"), 7);
  }
  EXPECT_EQ(file.ours("t").size(), run.calls.size());
  // Processes do not meet.
  std::set<std::int64_t> pids;
  for (const auto& event : file.ours("X")) pids.insert(event.at("pid").get<std::int64_t>());
  EXPECT_EQ(pids.size(), 1U);
  EXPECT_EQ(pids.count(4711) + pids.count(0), 0U);
}

TEST(Merge, SeveralRanksStandBesideEachOther) {
  const ScratchFolder folder;
  const RecordedRun first(folder / "run", 0);
  const RecordedRun second(folder / "run", 1);
  // The second trace counts from another moment.
  write_text(folder / "rank1.json", device_trace(second, 0, 1, 77'000'000'000));
  write_text(folder / "rank0.json", device_trace(first, 0, 0));
  const MergeResult merged = merge({.segments = {second.segment, first.segment},
                                    .traces = {folder / "rank0.json", folder / "rank1.json"},
                                    .out = folder / "merged.json.gz"});
  const TimelineFile file(merged.path);
  file.expect_sound();
  std::map<std::int64_t, std::size_t> kernels;
  std::set<std::string> arrows;
  for (const auto& event : file.all) {
    if (event.value("cat", "") == "kernel") ++kernels[event.at("pid").get<std::int64_t>()];
    if (event.value("cat", "") == "ac2g" && event.at("ph") == "s") arrows.insert(event.at("id").dump());
  }
  EXPECT_EQ(kernels.size(), 2U) << "GPU 0 of each rank is a process of its own";
  EXPECT_EQ(arrows.size(), first.calls.size() + second.calls.size()) << "arrows of two ranks do not meet";
  const std::int64_t base = file.document.at("baseTimeNanoseconds");
  std::vector<std::int64_t> begins;
  for (const auto& event : file.all) {
    if (std::string(event.at("name")).starts_with("enumerate"))
      begins.push_back(TimelineFile::ns(event.at("ts")) + base);
  }
  ASSERT_EQ(begins.size(), first.calls.size() + second.calls.size());
  for (std::size_t i = 0; i < second.calls.size(); ++i)
    EXPECT_NEAR(static_cast<double>(begins[first.calls.size() + i] - second.calls[i].begin_ns), 0, 2000);
  EXPECT_EQ(file.ours("f").size(), first.calls.size() + second.calls.size());
}

TEST(Merge, ClocksOfRanksAreAlignedByTheirCollectives) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run", 0, 12);
  write_text(folder / "rank0.json", device_trace(run, 0, 0, 1'000'000'000, true));
  // Another machine, whose clock is 30 ms ahead.
  write_text(folder / "rank1.json", device_trace(run, 30'000'000, 1, 1'000'000'000, true));
  const MergeResult merged = merge({.segments = {},
                                    .traces = {folder / "rank0.json", folder / "rank1.json"},
                                    .out = folder / "merged.json.gz"});
  const TimelineFile file(merged.path);
  file.expect_sound();
  std::map<std::int64_t, std::vector<std::int64_t>> ends;
  for (const auto& event : file.all) {
    if (std::string(event.at("name")).starts_with("nccl"))
      ends[event.at("pid").get<std::int64_t>()].push_back(TimelineFile::ns(event.at("ts")));
  }
  ASSERT_EQ(ends.size(), 2U);
  ASSERT_EQ(ends.begin()->second.size(), run.calls.size());
  for (std::size_t i = 0; i < run.calls.size(); ++i)
    EXPECT_NEAR(static_cast<double>(ends.begin()->second[i] - ends.rbegin()->second[i]), 0, 2000);
  const bool is_said = std::any_of(merged.notes.begin(), merged.notes.end(), [](const std::string& note) {
    return note.find("-30.000 ms were added to its times by") != std::string::npos;
  });
  EXPECT_TRUE(is_said) << ::testing::PrintToString(merged.notes);
}

TEST(Merge, ATraceThatWasCutIsKeptUpToTheCut) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run");
  const std::string text = device_trace(run, 0);
  write_text(folder / "cut.json", text.substr(0, text.size() * 2 / 3));
  const MergeResult merged =
      merge({.segments = {run.segment}, .traces = {folder / "cut.json"}, .out = folder / "merged.json.gz"});
  const TimelineFile file(merged.path);
  file.expect_sound();
  EXPECT_EQ(file.ours("X", "GetNext").size(), run.calls.size());
  EXPECT_GT(file.all.size(), file.ours("X").size() + 10);
  EXPECT_FALSE(merged.notes.empty());
}

TEST(Merge, EventsThatNoViewerCanReadAreLeftOutAndCounted) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run");
  std::string text = device_trace(run, 0);
  text.insert(text.find("\"dur\": 100") + 7, "NaN, \"was\": ");
  write_text(folder / "nan.json", text);
  const MergeResult merged =
      merge({.segments = {run.segment}, .traces = {folder / "nan.json"}, .out = folder / "merged.json.gz"});
  const TimelineFile file(merged.path);
  EXPECT_EQ(std::count_if(file.all.begin(), file.all.end(),
                          [](const auto& event) { return event.value("cat", "") == "kernel"; }),
            static_cast<std::ptrdiff_t>(run.calls.size()) - 1);
  EXPECT_TRUE(std::any_of(merged.notes.begin(), merged.notes.end(), [](const std::string& note) {
    return note.find("1 events left out") != std::string::npos;
  }));
}

TEST(Merge, BareArraysAndCommasBehindTheLastEvent) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run");
  const std::vector<std::string> texts = {
      "[]", "[ {\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1} ]",
      "{\"traceEvents\":[]}", "{\"traceEvents\": [ ] , \"k\": {\"a\": \"]}\"} }"};
  for (const std::string& text : texts) {
    write_text(folder / "small.json", text);
    const MergeResult merged = merge(
        {.segments = {run.segment}, .traces = {folder / "small.json"}, .out = folder / "merged.json.gz"});
    const TimelineFile file(merged.path);
    EXPECT_EQ(file.ours("X", "GetNext").size(), run.calls.size()) << text;
    EXPECT_FALSE(merged.clock_error_ns.has_value());
  }
}

TEST(Merge, WhatCannotBeReadIsAnErrorAndLeavesNothing) {
  const ScratchFolder folder;
  const RecordedRun run(folder / "run", 0, 2);
  write_text(folder / "text.json", "no trace at all");
  const std::string out = folder / "merged.json.gz";
  EXPECT_THROW(merge({.segments = {run.segment}, .traces = {folder / "text.json"}, .out = out}), FormatError);
  EXPECT_THROW(merge({.segments = {run.segment}, .traces = {folder / "missing.json"}, .out = out}),
               FormatError);
  EXPECT_THROW(merge({.segments = {folder / "missing.hrseg"}, .traces = {}, .out = out}), SegmentError);
  EXPECT_THROW(merge({.segments = {run.segment}, .traces = {}, .out = folder / "no/such/folder.gz"}), Error);
  EXPECT_THROW(merge({.segments = {}, .traces = {}, .out = out}), UsageError);
  struct stat info{};
  EXPECT_NE(stat(out.c_str(), &info), 0);
}

}  // namespace
}  // namespace headrace::timeline
