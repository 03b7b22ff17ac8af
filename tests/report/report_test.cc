#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../../src/report/printable.h"
#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/analysis/verdict/diagnosis_json.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile_json.h"
#include "headrace/report/json.h"
#include "headrace/report/page.h"
#include "headrace/report/text.h"
#include "report/profiles.h"

namespace headrace::report {
namespace {

using profile::Profile;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const Profile& profile, TextOptions options = {}) {
  return to_text(profile, analysis::diagnose(profile), options);
}

TEST(Text, SaysVerdictThenCureThenTimesThenEvidence) {
  const std::string text = text_of(decode_limits());
  std::size_t before = 0;
  for (const char* part :
       {"train_loader · 2 epochs · 1001 steps · 40.0 s · rank 0", "INPUT-BOUND   decode has too few workers",
        "confidence 0.", "waited 30.0 ms of 40.0 ms", "DO THIS", "decode.workers 1 -> 4", "the training step",
        "WHERE A BATCH GOES", "<- here", "QUEUES", "WHAT THE WAIT WAS FOR", "in decode", "EVIDENCE", "gate",
        "queues", "demand", "machine"}) {
    const std::size_t at = text.find(part, before);
    ASSERT_NE(at, std::string::npos) << part << "\n" << text;
    before = at;
  }
}

TEST(Text, EveryRowOfAdviceKeepsItsSentence) {
  const Profile profile = decode_limits();
  analysis::Diagnosis diagnosis = analysis::diagnose(profile);
  diagnosis.advice.resize(1);
  diagnosis.advice.front().then_limit = "cpu";
  analysis::Advice then = diagnosis.advice.front();
  then.parameter = "read.workers";
  then.text = "after that, run read with 2 workers; up to 72 MB more wait in memory";
  then.then_limit = "read";
  analysis::Advice code;
  code.predicted_step_s = 0.02;
  code.text = "load in a background thread";
  code.code = "import headrace as hr\nloader = hr.source(loader).prefetch(2)";
  diagnosis.advice.push_back(then);
  diagnosis.advice.push_back(code);
  const std::string text = to_text(profile, diagnosis);
  for (const char* part :
       {"  1  decode.workers 1 -> 4", "the CPU\n     run decode with 4 workers instead of 1\n",
        "  2  read.workers 1 -> 4",
        "read\n     after that, run read with 2 workers; up to 72 MB more wait in",
        "  3  load in a background thread: 40.0 ms -> ",
        "\n       import headrace as hr\n       loader = hr.source(loader).prefetch(2)\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  // The page says the same limit for the same row.
  EXPECT_NE(page_json(profile, diagnosis).find("\"limits\":[\"the CPU\",\"read\""), std::string::npos);
  for (const std::string& line : lines_of(to_text(profile, diagnosis, {.width = 40}))) {
    EXPECT_LE(columns(line), 40u);
  }
}

/// Of two operators in one thread, the time in the other one is no waiting.
TEST(Text, TimeInAnotherOperatorOfTheThreadIsNotBlocked) {
  Profile profile = decode_limits();
  EXPECT_EQ(text_of(profile).find("elsewhere"), std::string::npos);
  profile.operators[0].segment = profile.operators[1].segment = 1;
  profile.operators[0].states = {0.4, 0.03, 0.57, 0};
  profile.operators[1].states = {0.55, 0.43, 0.02, 0};
  const std::vector<std::string> lines = lines_of(text_of(profile, {.width = 120}));
  const auto row = [&](const std::string& name) {
    const auto found = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with("  " + name + " ") && line.find(" ms ") != std::string::npos;
    });
    return found == lines.end() ? std::string() : *found;
  };
  // busy, elsewhere, waits for input, blocked
  EXPECT_NE(row("read").find("40 %       55 %  3.0 %    2.0 %"), std::string::npos) << row("read");
  EXPECT_NE(row("decode").find("55 %       40 %  3.0 %    2.0 %"), std::string::npos) << row("decode");
}

TEST(Text, HeadlineSaysHowLittleThereIsToGain) {
  Profile profile = decode_limits();
  EXPECT_NE(text_of(profile, {.width = 400}).find("so a faster input gains at most 4.00x"),
            std::string::npos);
  profile.sink.compute_s = 0.0378;
  profile.sink.wait_share = profile.sink.starved_share = 0.055;
  profile.operators[1].demand_s = 0.038;
  const std::string text = text_of(profile, {.width = 400});
  EXPECT_NE(text.find("INPUT-BOUND"), std::string::npos) << text;
  EXPECT_NE(text.find("gains at most 1.06x"), std::string::npos) << text;
  EXPECT_EQ(text.find("DO THIS"), std::string::npos) << text;
  EXPECT_NE(text.find("No parameter gains 5 %."), std::string::npos) << text;
  profile.operators[0].name = "n";
  EXPECT_NE(text_of(profile, {.width = 400}).find("No parameter gains 5 %."), std::string::npos) << "no name";
  profile.operators[0].name = "no";
  EXPECT_NE(text_of(profile, {.width = 400}).find("no parameter gains 5 %."), std::string::npos) << "a name";
}

TEST(Text, PartsOfTheStepStandBelowItWhereHooksTold) {
  Profile profile = decode_limits();
  EXPECT_EQ(text_of(profile).find("a step: gap"), std::string::npos);
  profile.sink.marked = profile::MarkedSteps{1000, 1000, 1000, 0.031, 0.007, 0.002};
  EXPECT_NE(text_of(profile).find("  a step: gap 31.0 ms, forward and backward 7.00 ms, tail 2.00 ms "
                                  "(hooks, the host's time)\n"),
            std::string::npos)
      << text_of(profile);
  profile.sink.marked = profile::MarkedSteps{900, 1000, 0, 0.031, 0.009, 0};
  EXPECT_NE(text_of(profile).find("forward, backward and tail 9.00 ms (hooks, the host's time, 900 of 1000"),
            std::string::npos)
      << text_of(profile);
  for (const std::string& line : lines_of(text_of(profile, {.width = 40}))) EXPECT_LE(columns(line), 40u);
}

TEST(Text, PartsOfTheStepAreThoseOfTheDeviceWhereATraceTells) {
  Profile profile = decode_limits();
  profile.sink.marked = profile::MarkedSteps{1000, 1000, 1000, 0.031, 0.007, 0.002};
  profile.device = profile::DeviceProfile{};
  profile.device->rank = 3;
  profile.device->steps =
      profile::DeviceSteps{6, 6, 6, 0.0614, 0.114, 0.0019, 0.02, 0.005, {}, {}, "", "", {}};
  const std::string text = text_of(profile, {.width = 200});
  EXPECT_NE(
      text.find("  a step: gap 61.4 ms, forward and backward 114 ms, tail 1.90 ms (device trace, 6 steps), "
                "communication 20.0 ms, 25 % of it under computation\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("The trace is of rank 3."), std::string::npos) << text;
  EXPECT_EQ(text.find("Parts of a step"), std::string::npos);
  profile.device->steps.reset();
  profile.device->step_notes = {"rank 3 has no steps"};
  const std::string without = text_of(profile, {.width = 400});
  EXPECT_NE(without.find("(hooks, the host's time)"), std::string::npos) << without;
  EXPECT_NE(without.find("Parts of a step: the device trace tells no parts (rank 3 has no steps); hooks see"),
            std::string::npos)
      << without;
  for (const std::string& line : lines_of(text_of(profile, {.width = 40}))) EXPECT_LE(columns(line), 40u);
}

TEST(Text, HealthyRunIsShorterAndAsksForNothing) {
  const std::string text = text_of(healthy());
  EXPECT_NE(text.find("NOT INPUT-BOUND   the training step is the limit"), std::string::npos) << text;
  EXPECT_NE(text.find("The input could feed steps down to 20.0 ms"), std::string::npos) << text;
  EXPECT_EQ(text.find("DO THIS"), std::string::npos);
  EXPECT_EQ(text.find("<- here"), std::string::npos);
  EXPECT_LT(text.size(), text_of(decode_limits()).size());
}

TEST(Text, UndeterminedSaysWhatIsMissing) {
  const std::string text = text_of(Profile{});
  EXPECT_NE(text.find("UNDETERMINED   the loop over this loader has not begun"), std::string::npos) << text;
  EXPECT_EQ(text.find("confidence"), std::string::npos);
}

TEST(Text, NoLineIsWiderThanAsked) {
  for (const Profile& profile : {decode_limits(), healthy(), Profile{}}) {
    for (int width : {40, 60, 80, 100, 140}) {
      for (const std::string& line : lines_of(text_of(profile, {.width = width}))) {
        EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

TEST(Text, NarrowTerminalsLoseColumnsNotVerdicts) {
  const std::string text = text_of(decode_limits(), {.width = 60});
  EXPECT_NE(text.find("decode.workers 1 -> 4"), std::string::npos) << text;
  EXPECT_EQ(text.find("waits for input"), std::string::npos) << text;
}

TEST(Text, ColourOnlyWhereAsked) {
  EXPECT_EQ(text_of(decode_limits()).find('\x1b'), std::string::npos);
  const std::string coloured = text_of(decode_limits(), {.color = true});
  EXPECT_NE(coloured.find("\x1b[1;31mINPUT-BOUND\x1b[0m"), std::string::npos);
}

TEST(Text, WhatIsNotKnownIsADash) {
  const std::string text = text_of(decode_limits());
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("  decode  ", 0) == 0 && line.find("map") != std::string::npos) {
      EXPECT_NE(line.find(" -  <- here"), std::string::npos) << line;  // its CPU time was not recorded
    }
  }
}

TEST(Text, HostileNamesAreSafe) {
  const std::string names[] = {"a\nb\r\tc",
                               "\x1b[31mred\x1b[0m",
                               std::string(10000, 'x'),
                               "[bold]x[/bold] <script>",
                               "\xff\xfe",
                               "解码解码解码解码解码解码解码解码解码解码解码解码解码解码解码解码",
                               "\u202Eevil",
                               std::string(10000, '\n'),
                               "e" + std::string(3000, '\xcc')};
  for (const std::string& name : names) {
    Profile profile = decode_limits();
    profile.loader = name;
    profile.operators[1].name = name;
    profile.operators[1].parameters[0].parameter = name + ".workers";
    profile.queues[1].name = name;
    profile.queues[1].from = profile.queues[0].to = name;
    profile.stall_ledger[0].op = name;
    profile.notes = {name};
    for (int width : {60, 100}) {
      const std::string text = text_of(profile, {.width = width});
      EXPECT_LT(text.size(), 12000u);
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      EXPECT_EQ(text.find('\r'), std::string::npos);
      EXPECT_EQ(text.find("\u202E"), std::string::npos);
      for (const std::string& line : lines_of(text)) {
        EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
}

TEST(Text, FiveHundredOperatorsAreCounted) {
  Profile profile = decode_limits();
  for (int i = 0; i < 500; ++i) {
    profile.operators.push_back(profile.operators[0]);
    profile.operators.back().name = "extra" + std::to_string(i);
  }
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("more operators"), std::string::npos);
  EXPECT_LT(lines_of(text).size(), 80u);
}

TEST(Loader, SettingsAreSaidWhereTheyAreNotTheDefault) {
  const std::string text = text_of(in_workers(4));
  EXPECT_NE(
      text.find(
          "\nnum_workers=24, prefetch_factor=2, batch_size=8, pin_memory=True, dataset_kind=iterable\n"),
      std::string::npos)
      << text;
  EXPECT_EQ(text.find("in_order"), std::string::npos);
}

TEST(Loader, FewWorkersAreListedInTheirOrder) {
  const std::string text = text_of(in_workers(4));
  std::size_t before = text.find("WORKERS");
  ASSERT_NE(before, std::string::npos) << text;
  for (const char* row : {"worker 0", "worker 1", "worker 2", "worker 3"}) {
    const std::size_t at = text.find(row, before);
    ASSERT_NE(at, std::string::npos) << row << "\n" << text;
    before = at;
  }
  EXPECT_NE(text.find("27.0 ms"), std::string::npos) << text;  // (1.0 + 2 x 0.04) s in 40 batches
  EXPECT_NE(text.find("3 of 4"), std::string::npos);
}

TEST(Loader, OfManyWorkersTheSlowestAndTheFastestAreListed) {
  const std::string text = text_of(in_workers(24));
  EXPECT_NE(text.find("worker 23"), std::string::npos) << text;
  EXPECT_NE(text.find("worker 0"), std::string::npos);
  EXPECT_EQ(text.find("worker 12"), std::string::npos);
  EXPECT_NE(text.find("18 more, "), std::string::npos);
  EXPECT_LT(lines_of(text).size(), 60u);
}

TEST(Loader, QueuesThatEveryWorkerHasAreOneRow) {
  const std::string text = text_of(in_workers(24));
  EXPECT_NE(text.find("index (24 queues)"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n  index[0]"), std::string::npos);  // no row of its own
  EXPECT_NE(text.find("0.5"), std::string::npos);           // their mean
  EXPECT_NE(text_of(in_workers(3)).find("index[2]"), std::string::npos);
}

TEST(Loader, LedgerSaysWhatTheAwaitedBatchWaitedFor) {
  const std::string text = text_of(in_workers(4));
  for (const char* row :
       {"in decode", "waiting for a worker of decode", "blocked behind an older batch in decode"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  }
}

TEST(Loader, HandoffIsSaidWithItsSize) {
  const std::string text = text_of(in_workers(4), {.width = 400});
  EXPECT_NE(text.find("64 MB through a pipe and 1 tensor through shared memory"), std::string::npos) << text;
  EXPECT_NE(text.find("3 batches were prefetched and never used"), std::string::npos);
}

TEST(Text, ACopyToADeviceIsSaidWithItsSpeed) {
  Profile profile = healthy();
  profile.operators.back().name = "to_device";
  profile.operators.back().transfer = profile::Transfer{10, 640'000'000, 8.1e9, 0.25, 0.08, 0.03};
  const std::string text = text_of(profile, {.width = 400});
  EXPECT_NE(
      text.find("to_device copies 64 MB a batch at 8.1 GB/s, 25 % of it from page-locked memory; it waits "
                "3.00 ms a batch for a free buffer of the device"),
      std::string::npos)
      << text;
  profile.operators.back().transfer = profile::Transfer{10, 640'000'000, {}, {}, 0, 0};
  EXPECT_NE(text_of(profile, {.width = 400}).find("to_device copies 64 MB a batch\n"), std::string::npos);
  profile.operators.back().transfer = profile::Transfer{};
  EXPECT_EQ(text_of(profile, {.width = 400}).find("to_device copies"), std::string::npos);
}

TEST(Loader, NoLineIsWiderThanAsked) {
  Profile profile = in_workers(24);
  profile.settings.push_back({"sampler", std::string(5000, 'x') + "\n\x1b[31m"});
  profile.settings.push_back({std::string(5000, 'y'), "1"});
  for (int width : {40, 60, 100}) {
    const std::string text = text_of(profile, {.width = width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    for (const std::string& line : lines_of(text)) {
      EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(Json, DocumentHasTheNamesOfTheApi) {
  const Profile profile = decode_limits();
  const auto document = nlohmann::json::parse(to_json(profile, analysis::diagnose(profile)));
  EXPECT_EQ(document["version"], 1);
  EXPECT_EQ(document["loader"], "train_loader");
  EXPECT_EQ(document["rank"], 0);
  EXPECT_EQ(document["diagnosis"]["operator"], "decode");
  EXPECT_EQ(document["diagnosis"]["advice"][0]["from"], 1);
  EXPECT_EQ(document["steps"]["source"], "loader");
  EXPECT_NEAR(document["steps"]["average"]["iteration_gap_s"].get<double>(), 0.03, 1e-9);
  EXPECT_TRUE(document["steps"]["average"]["tail_s"].is_null());
  EXPECT_EQ(profile::profile_to_json(profile::profile_from_tree(document["profile"])),
            profile::profile_to_json(profile));
}

TEST(Text, SecondOpinionsAndAbsentFigures) {
  profile::Profile profile = decode_limits();
  profile.second_opinions = {{"Tool", "a rule", "says this", "read", "it looked at averages"}};
  profile.operators[0].demand_s = profile.operators[0].busy_s = -1;
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("SECOND OPINIONS"), std::string::npos);
  EXPECT_NE(text.find("Tool, a rule: says this"), std::string::npos);
  EXPECT_NE(text.find("misled: it looked at averages"), std::string::npos);
  EXPECT_EQ(text.find("-1"), std::string::npos) << "what is not known is a dash";
}

TEST(Text, FindingsSayWhatToDo) {
  profile::Profile profile = decode_limits();
  profile::Finding finding;
  finding.kind = "nonfinite_batch";
  finding.severity = "fault";
  finding.says = "train: batch[0] is not finite in step 5, row 3";
  finding.cure = "Look at the sample";
  profile.findings = {finding};
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("FINDINGS IN DATA AND TRAINING"), std::string::npos);
  EXPECT_NE(text.find("fault, nonfinite_batch: train: batch[0] is not finite"), std::string::npos);
  EXPECT_NE(text.find("do: Look at the sample"), std::string::npos);
  EXPECT_EQ(text_of(decode_limits()).find("FINDINGS"), std::string::npos);
}

profile::BudgetPart budget_part(const std::string& part, double seconds, std::uint64_t times) {
  profile::BudgetPart made;
  made.part = part;
  made.seconds = seconds;
  made.share = seconds / 10;
  made.times = times;
  return made;
}

TEST(Text, TheBudgetComesFirstWhereSomethingElseThanTrainingIsTheLargestPart) {
  profile::Profile profile = decode_limits();
  profile.budget = {budget_part("evaluation", 6, 3), budget_part("steps", 3, 100),
                    budget_part("waits", 1, 100)};
  profile.budget[0].function = "evaluate (train.py:41)";
  profile.budget[0].period = 40;
  profile.budget[0].cure = "evaluate half as often";
  profile.budget[0].saves_s = 3;
  std::string text = text_of(profile);
  EXPECT_LT(text.find("WHERE THE RUN'S 10.0 s WENT"), text.find("INPUT-BOUND"));
  EXPECT_NE(text.find("evaluate (train.py:41), every 40 steps"), std::string::npos);
  EXPECT_NE(text.find("do: evaluate half as often: saves up to 3.00 s"), std::string::npos);
  profile.budget[0].times = 1;  // a longer run has no more of it
  text = text_of(profile);
  EXPECT_GT(text.find("WHERE THE RUN'S 10.0 s WENT"), text.find("INPUT-BOUND"));
  profile.budget = {budget_part("steps", 9.5, 100), budget_part("startup", 0.5, 1)};
  EXPECT_EQ(text_of(profile).find("WHERE THE RUN"), std::string::npos);
}

TEST(Text, TokensSayWhatIsPaddingAndWhatWouldSaveIt) {
  profile::Profile profile = decode_limits();
  profile::TokenProfile& tokens = profile.tokens.emplace();
  tokens.tokens = 1024;
  tokens.places = 4096;
  tokens.padding_share = 0.75;
  tokens.rows = 8;
  tokens.tokens_per_s = 182'000;
  tokens.rank_imbalance = 0.23;
  tokens.savings = {{"pack", 0.74, "pack several sequences into rows of 512"}};
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("A batch has 1,024 tokens in 4,096 places: 75 % of what a step computes is padding"),
            std::string::npos);
  EXPECT_NE(text.find("182,000 tokens"), std::string::npos);
  EXPECT_NE(text.find("  8 rows,"), std::string::npos);
  EXPECT_NE(text.find("has 23 % more than the ranks' mean"), std::string::npos);
  EXPECT_NE(text.find("do: pack several sequences into rows of 512: saves 74 %"), std::string::npos);
}

TEST(Text, WhatWasSetWhileItTrained) {
  profile::Profile profile = decode_limits();
  profile::ParameterChange change;
  change.parameter = "workers";
  change.from_value = "0";
  change.to_value = "4";
  change.step = 480;
  change.outcome = "kept";
  change.says = "34.6 ms -> 10.1 ms a step";
  change.low = 0.28;
  change.high = 0.31;
  change.predicted_step_s = 0.0098;
  profile.autopilot = {change, change};
  profile.autopilot[1].outcome = "tried";
  const std::string text = text_of(profile);
  EXPECT_NE(
      text.find("SET WHILE IT TRAINED\n"
                "  workers 0 -> 4 (step 480): kept, 34.6 ms -> 10.1 ms a step (0.28 to 0.31 times as long), "
                "predicted\n  9.80 ms\n"
                "  workers 0 -> 4 (step 480): tried last, and not judged, predicted 9.80 ms\n"),
      std::string::npos)
      << text;
}

TEST(Text, StepsOfATraceThatHasNothingElse) {
  profile::Profile profile = decode_limits();
  profile.device.emplace().idle_s = -1;
  profile.device->steps =
      profile::DeviceSteps{6, 6, 6, 0.004, 0.03, 0.001, 0.002, -1, {}, {}, "Conv", "", {}};
  profile.device->steps->gap = {{profile::GapReason::processing, 0.003},
                                {profile::GapReason::unknown, 0.001}};
  profile.device->steps->segments = {{"AllReduce-op1", 0.01, 0.002}};
  const std::string text = text_of(profile);
  EXPECT_NE(text.find("Of the gap: 3.00 ms waiting for data that was still being made"), std::string::npos)
      << text;
  EXPECT_NE(text.find("Forward begins with Conv"), std::string::npos);
  EXPECT_NE(text.find("AllReduce-op1 2.00 ms"), std::string::npos);
  EXPECT_EQ(text.find("computed nothing"), std::string::npos) << "a step trace does not tell idle time";
}

}  // namespace
}  // namespace headrace::report
