// Every class of DataLoader in virtual time, drawn many times: kind, operator, cause and the first advice.
// Other draws: HEADRACE_SEED=7.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/labelled_loaders.h"
#include "support/verdict_words.h"
#include "verdicts/seed.h"

namespace headrace::analysis {
namespace {

using simulation::LabelledLoader;
using simulation::LoaderClass;
using simulation::Random;

constexpr int kLoaderDraws = 6;

std::string told(const Diagnosis& diagnosis) {
  return word_of(diagnosis.kind) + ", " + diagnosis.op.value_or("-") + ", " + word_of(diagnosis.cause) +
         ": " + diagnosis.summary;
}

bool first_advice_is(const Diagnosis& diagnosis, const std::string& parameter) {
  if (parameter.empty()) return true;
  if (diagnosis.advice.empty()) return false;
  return diagnosis.advice.front().parameter == (parameter == "-" ? "" : parameter);
}

/// Parameters that the framework would refuse, or that nobody should touch in a healthy run.
void expect_sensible(const LabelledLoader& labelled, const Diagnosis& diagnosis) {
  for (const Advice& advice : diagnosis.advice) {
    const bool needs_workers = advice.parameter == "prefetch_factor" || advice.parameter == "in_order" ||
                               advice.parameter == "persistent_workers";
    EXPECT_FALSE(needs_workers && labelled.loader.num_workers == 0) << advice.parameter;
    EXPECT_EQ(advice.parameter.empty(), advice.from == advice.to) << advice.parameter;
    EXPECT_GE(advice.speedup.value_or(1.05), 1.05) << advice.parameter << advice.text;
    if (diagnosis.kind == VerdictKind::not_input_bound) {
      EXPECT_EQ(advice.parameter, "persistent_workers");
    }
    if (advice.predicted_step_s) {
      EXPECT_LE(*advice.low, *advice.predicted_step_s);
      EXPECT_GE(*advice.high, *advice.predicted_step_s);
    }
  }
}

struct LoaderRecording {
  LoaderClass loader_class;
  bool blurred = false;
};

void PrintTo(const LoaderRecording& recording, std::ostream* out) {
  *out << recording.loader_class.name << (recording.blurred ? " blurred" : "");
}

/// As on a quiet machine, or as on a busy one with short sequences.
profile::Profile record(LabelledLoader& labelled, bool blurred, std::uint64_t seed) {
  if (!blurred) return simulation::simulate(labelled.loader, seed);
  labelled.loader.compute_factor = simulation::jitter(0.1);
  if (labelled.loader.tick_s > 2e-5) labelled.loader.hiccups = 0.003 / labelled.loader.batch_size;
  return simulation::blurred(simulation::simulate(labelled.loader, seed), seed);
}

class Loaders : public testing::TestWithParam<LoaderRecording> {};

TEST_P(Loaders, NameKindOperatorCauseAndCure) {
  const LoaderClass& loader_class = GetParam().loader_class;
  RecordProperty("seed", std::to_string(first_seed()));
  int right = 0;
  for (int draw = 0; draw < kLoaderDraws; ++draw) {
    const auto seed = first_seed() + static_cast<std::uint64_t>(draw) + (GetParam().blurred ? 500 : 0);
    Random random(seed);
    LabelledLoader labelled = loader_class.draw(random);
    const Diagnosis diagnosis = diagnose(record(labelled, GetParam().blurred, seed));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + told(diagnosis));
    const bool kind = labelled.kinds.contains(word_of(diagnosis.kind));
    const bool op = diagnosis.op.value_or("") == labelled.op;
    if (labelled.kinds.contains("not_input_bound")) {
      EXPECT_TRUE(kind);  // no alarm on a healthy run, without exception
    }
    EXPECT_TRUE(op);
    EXPECT_NE(diagnosis.cause, Cause::gil_contention);
    EXPECT_GT(diagnosis.confidence, 0.0);
    expect_sensible(labelled, diagnosis);
    const bool cause = word_of(diagnosis.cause) == labelled.cause;
    const bool cure = first_advice_is(diagnosis, labelled.parameter);
    if (!(kind && op && cause && cure)) {
      std::printf("seed %llu: %s; first advice %s\n", static_cast<unsigned long long>(seed),
                  told(diagnosis).c_str(),
                  diagnosis.advice.empty() ? "none" : diagnosis.advice.front().parameter.c_str());
    }
    right += kind && op && cause && cure ? 1 : 0;
  }
  EXPECT_GE(right, kLoaderDraws - 1);
}

std::vector<LoaderRecording> recordings_of_loaders() {
  std::vector<LoaderRecording> recordings;
  for (const LoaderClass& each : simulation::loader_classes()) {
    recordings.push_back({each, false});
    recordings.push_back({each, true});
  }
  return recordings;
}

INSTANTIATE_TEST_SUITE_P(Classes, Loaders, testing::ValuesIn(recordings_of_loaders()), [](const auto& info) {
  return std::string(info.param.loader_class.name) + (info.param.blurred ? "_blurred" : "");
});

}  // namespace
}  // namespace headrace::analysis
