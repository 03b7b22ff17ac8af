// Every class of pipeline in virtual time, drawn many times: kind, operator and cause of the verdict,
// recorded well and badly. Other draws: HEADRACE_SEED=7 (the seed is printed).
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/draws.h"
#include "support/simulation/labelled_lines.h"
#include "support/verdict_words.h"
#include "verdicts/seed.h"

namespace headrace::analysis {
namespace {

using simulation::Labelled;
using simulation::LineClass;
using simulation::Random;

constexpr int kLineDraws = 12;

struct LineRecording {
  const LineClass* line_class;
  bool blurred;
};

void PrintTo(const LineRecording& recording, std::ostream* out) {
  *out << recording.line_class->name << (recording.blurred ? " blurred" : "");
}

profile::Profile record(Labelled& labelled, bool blurred, std::uint64_t seed) {
  if (!blurred) return simulation::simulate(labelled.line, seed);
  labelled.line.hiccups = 0.01;
  labelled.line.compute_factor = simulation::noisier(labelled.line.compute_factor);
  return simulation::blurred(simulation::simulate(labelled.line, seed), seed);
}

class Simulated : public testing::TestWithParam<LineRecording> {};

TEST_P(Simulated, NameKindOperatorAndCause) {
  RecordProperty("seed", std::to_string(first_seed()));
  std::printf("seed %llu\n", static_cast<unsigned long long>(first_seed()));
  int right = 0;
  for (int draw = 0; draw < kLineDraws; ++draw) {
    const auto seed = first_seed() + static_cast<std::uint64_t>(draw) + (GetParam().blurred ? 500 : 0);
    Random random(seed);
    Labelled labelled = GetParam().line_class->draw(random);
    const profile::Profile recorded = record(labelled, GetParam().blurred, seed);
    const Diagnosis diagnosis = diagnose(recorded);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + word_of(diagnosis.kind) + ", " +
                 diagnosis.op.value_or("-") + ", " + word_of(diagnosis.cause) + ", expected " + labelled.op +
                 ", " + labelled.cause);
    const bool kind = labelled.kinds.contains(word_of(diagnosis.kind));
    const bool op = labelled.op == "*" ? diagnosis.op.has_value() : diagnosis.op.value_or("") == labelled.op;
    const bool cause = word_of(diagnosis.cause) == labelled.cause;
    // The promises that have no exceptions: no alarm on a healthy run, and the operator.
    if (labelled.kinds.contains("not_input_bound")) {
      EXPECT_TRUE(kind);
      for (const Advice& advice : diagnosis.advice) EXPECT_TRUE(advice.parameter.empty()) << advice.text;
    }
    EXPECT_TRUE(op);
    const Verdict alone = verdict_on(recorded);
    EXPECT_EQ(alone.op, diagnosis.op);
    EXPECT_EQ(alone.cause, diagnosis.cause) << word_of(alone.cause);
    EXPECT_GE(diagnosis.confidence, 0.0);
    EXPECT_LE(diagnosis.confidence, 1.0);
    EXPECT_LE(diagnosis.share_of_step, 1.0);
    right += kind && op && cause ? 1 : 0;
  }
  EXPECT_GE(right, kLineDraws - 1);
}

std::vector<LineRecording> recordings_of_lines() {
  std::vector<LineRecording> recordings;
  for (const LineClass& each : simulation::line_classes()) {
    recordings.push_back({&each, false});
    recordings.push_back({&each, true});
  }
  return recordings;
}

std::string name_of(const testing::TestParamInfo<LineRecording>& info) {
  return std::string(info.param.line_class->name) + (info.param.blurred ? "_blurred" : "");
}

INSTANTIATE_TEST_SUITE_P(Classes, Simulated, testing::ValuesIn(recordings_of_lines()), name_of);

}  // namespace
}  // namespace headrace::analysis
