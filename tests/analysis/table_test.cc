#include "headrace/analysis/table.h"

#include <gtest/gtest.h>

#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

Table two_columns() {
  Texts names;
  names.push_back("gemm");
  names.push_back("");
  Table table;
  table.add("name", std::move(names)).add("count", Integers{3, 4});
  return table;
}

TEST(Table, HoldsColumnsOfOneLength) {
  const Table table = two_columns();
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.texts("name")[0], "gemm");
  EXPECT_EQ(table.texts("name")[1], "");
  EXPECT_EQ(table.integers("count"), (Integers{3, 4}));
}

TEST(Table, RefusesAnotherLengthAndANameTwice) {
  Table table = two_columns();
  EXPECT_THROW(table.add("mean_s", Numbers{1.0}), UsageError);
  EXPECT_THROW(table.add("count", Integers{1, 2}), UsageError);
  EXPECT_EQ(table.columns().size(), 2U);
}

TEST(Table, SaysWhichColumnsThereAre) {
  const Table table = two_columns();
  try {
    table.column("mean_s");
    FAIL() << "a column that is not there was found";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("name, count"), std::string::npos) << error.what();
  }
  EXPECT_THROW(table.numbers("count"), UsageError);
}

}  // namespace
}  // namespace headrace::analysis
