// Changes of the program that no parameter makes: what the recording shows of how items are made.
#include <gtest/gtest.h>

#include <string>

#include "headrace/analysis/verdict/diagnose.h"
#include "support/simulation/loader.h"

namespace headrace::analysis {
namespace {

using profile::Profile;
using simulation::DataLoader;

/// Rows that compute, in the loop. The simulation's clock ticks every 100 us: `row_s` is what was measured instead.
Profile rows(int batch_size, double row_s) {
  const DataLoader loader{
      .parts = {{.name = "Table", .cpu_s = 1e-4}, {.name = "collate", .cpu_s = 1e-3, .per_batch = true}},
      .num_workers = 0,
      .batch_size = batch_size,
      .compute_s = 0.001,
      .cores = 4};
  Profile profile = simulation::simulate(loader, 1);
  for (profile::OperatorProfile& op : profile.operators) {
    if (op.name == "Table") op.busy_s = *(op.cpu_s = row_s * static_cast<double>(op.items.value_or(0)));
  }
  return profile;
}

/// The advice with these words, which is no parameter, is predicted to gain, and stands behind what gains half as much.
bool says(const Profile& profile, const std::string& words) {
  const Diagnosis diagnosis = diagnose(profile);
  EXPECT_EQ(diagnosis.kind, VerdictKind::input_bound);
  for (const Advice& advice : diagnosis.advice) {
    const double step_s = advice.predicted_step_s.value_or(profile.sink.step_s);
    if (advice.text.find(words) != std::string::npos)
      return step_s < profile.sink.step_s && advice.parameter.empty();
  }
  return false;
}

TEST(CodeChanges, RowsInMemoryAreTakenAtOnce) {
  EXPECT_TRUE(says(rows(512, 8e-6), "__getitems__"));
  EXPECT_FALSE(says(rows(8, 8e-4), "__getitems__")) << "items that decode something";
  EXPECT_FALSE(says(rows(16, 40e-6), "__getitems__")) << "too few rows to matter";
}

TEST(CodeChanges, AnObjectOfPandasForEachRowIsNamed) {
  Profile profile = rows(16, 4e-4);
  for (profile::OperatorProfile& op : profile.operators) {
    if (op.name != "Table") continue;
    op.functions = {{"Series.drop (series.py:6207) in Table.__getitem__ (train.py:15)", 0.5},
                    {"json.loads in Table.__getitem__ (train.py:16)", 0.3}};
  }
  EXPECT_TRUE(says(profile, "50 % of the time of Table goes into pandas'"));
  for (profile::OperatorProfile& op : profile.operators) {
    if (!op.functions.empty()) op.functions.erase(op.functions.begin());
  }
  EXPECT_FALSE(says(profile, "pandas"));
}

TEST(CodeChanges, TokensAreMadeBefore) {
  Profile profile = rows(16, 4e-4);
  EXPECT_FALSE(says(profile, "make the tokens once"));
  for (profile::OperatorProfile& op : profile.operators) {
    if (op.name != "Table") continue;
    op.functions = {{"PreTrainedTokenizerFast._encode_plus in Table.__getitem__ (train.py:15)", 0.9}};
  }
  EXPECT_TRUE(says(profile, "make the tokens once"));
}

}  // namespace
}  // namespace headrace::analysis
