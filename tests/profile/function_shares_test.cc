#include "headrace/profile/function_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace headrace::profile {
namespace {

TEST(FunctionShares, WhatIsStoredIsRead) {
  OperatorRecord record{};
  store_functions(record, "decode (train.py:12)\t0.62\ntime.sleep\t0.20\n");
  const auto functions = functions_of(record);
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions[0].name, "decode (train.py:12)");
  EXPECT_DOUBLE_EQ(functions[0].share, 0.62);
  EXPECT_EQ(functions[1].name, "time.sleep");
}

TEST(FunctionShares, WhatDoesNotFitIsCutAtALine) {
  OperatorRecord record{};
  const std::string line = std::string(80, 'f') + "\t0.30\n";
  store_functions(record, line + line + line);
  EXPECT_EQ(functions_of(record).size(), 2U);
  store_functions(record, std::string(500, 'f'));
  EXPECT_TRUE(functions_of(record).empty());
}

TEST(FunctionShares, LinesOfAnotherFormAreLeftOut) {
  OperatorRecord record{};
  store_functions(record, "no share\n\t0.5\nover\t7\nbelow\t-1\nnan\tnan\nright\t0.5\n");
  const auto functions = functions_of(record);
  ASSERT_EQ(functions.size(), 1U);
  EXPECT_EQ(functions[0].name, "right");
}

TEST(FunctionShares, ATextWithoutAnEndIsRead) {
  OperatorRecord record{};
  std::fill(record.functions.begin(), record.functions.end(), 'x');
  EXPECT_TRUE(functions_of(record).empty());
}

}  // namespace
}  // namespace headrace::profile
