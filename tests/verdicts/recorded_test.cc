// Each recorded profile gets the verdict that it is labelled with.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile_json.h"
#include "support/verdict_words.h"
#include "verdicts/corpus.h"

namespace headrace::analysis {
namespace {

namespace fs = std::filesystem;

class Recorded : public testing::TestWithParam<fs::path> {};

TEST_P(Recorded, IsJudgedAsLabelled) {
  std::ifstream file(GetParam());
  const nlohmann::json document = nlohmann::json::parse(file);
  const profile::Profile profile = profile::profile_from_tree(document.at("profile"));
  const Diagnosis diagnosis = diagnose(profile);
  const auto kinds = document.at("kinds").get<std::set<std::string>>();
  const auto op = document.at("operator").get<std::string>();
  EXPECT_TRUE(kinds.contains(word_of(diagnosis.kind)))
      << word_of(diagnosis.kind) << ": " << diagnosis.summary;
  if (op == "*") {
    EXPECT_TRUE(diagnosis.op.has_value());
  } else {
    EXPECT_EQ(diagnosis.op.value_or(""), op) << diagnosis.summary;
  }
  EXPECT_EQ(word_of(diagnosis.cause), document.at("cause").get<std::string>()) << diagnosis.summary;
  const Verdict verdict = verdict_on(profile);
  EXPECT_EQ(verdict.kind, diagnosis.kind);
  EXPECT_EQ(verdict.op, diagnosis.op);
  EXPECT_EQ(verdict.cause, diagnosis.cause);
  EXPECT_GT(diagnosis.confidence, 0.0);
  const bool healthy = kinds == std::set<std::string>{"not_input_bound"} && !diagnosis.cause;
  EXPECT_TRUE(!healthy || diagnosis.advice.empty());
  for (const Advice& advice : diagnosis.advice) EXPECT_GE(advice.speedup.value_or(1.05), 1.05) << advice.text;
}

TEST(Corpus, IsThere) { EXPECT_GE(corpus().size(), 40U); }

INSTANTIATE_TEST_SUITE_P(Corpus, Recorded, testing::ValuesIn(corpus()),
                         [](const auto& info) { return info.param.stem().string(); });

// Loops of every loader that Headrace knows, as their tests in tests/python asserted.
INSTANTIATE_TEST_SUITE_P(Loops, Recorded, testing::ValuesIn(recorded("loops")), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace headrace::analysis
