#include "headrace/analysis/rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

namespace headrace::analysis {
namespace {

using WhoColumns = ColumnList<Integer<"rank">, Optional<Integer<"device">>>;
using SampleColumns = ColumnList<WhoColumns, Text<"name">, Number<"busy_s", "Anything ran.">,
                                 Number<"busy_pct">, Integer<"complete">>;

TEST(Rows, FillTheDeclaredColumnsInTheirOrder) {
  Rows<SampleColumns> rows;
  rows.add(std::int16_t{3}, 0U, std::string("gemm"), 0.5, 50.0, true);
  rows.add(std::tuple(4, 1), "copy", std::array{1.5, 75.0}, false);
  rows.note(4, " has no steps");
  EXPECT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.column<"rank">(), (Integers{3, 4}));
  const Table table = rows.take();
  ASSERT_EQ(table.columns().size(), SampleColumns::kCount);
  for (std::size_t i = 0; i < SampleColumns::kCount; ++i)
    EXPECT_EQ(table.columns()[i].name, SampleColumns::names()[i]);
  EXPECT_EQ(table.integers("device"), (Integers{0, 1}));
  EXPECT_EQ(table.texts("name")[1], "copy");
  EXPECT_EQ(table.numbers("busy_s"), (Numbers{0.5, 1.5}));
  EXPECT_EQ(table.numbers("busy_pct"), (Numbers{50, 75}));
  EXPECT_EQ(table.integers("complete"), (Integers{1, 0}));
  EXPECT_EQ(table.column("busy_s").says, "Anything ran.");
  EXPECT_EQ(table.notes, std::vector<std::string>{"rank 4 has no steps"});
}

TEST(Rows, LeaveOutAnOptionalColumnThatIsNotShown) {
  Rows<WhoColumns> rows;
  rows.show<"device">(false);
  rows.add(0, 7);
  const Table table = rows.take();
  ASSERT_EQ(table.columns().size(), 1U);
  EXPECT_EQ(table.columns()[0].name, "rank");
}

TEST(Rows, TheShapeHasTypesUnitsAndSentences) {
  const auto shape = shape_of<SampleColumns>();
  ASSERT_EQ(shape.size(), SampleColumns::kCount);
  EXPECT_STREQ(shape[0].type, "integer");
  EXPECT_FALSE(shape[0].optional);
  EXPECT_TRUE(shape[1].optional);
  EXPECT_STREQ(shape[2].type, "text");
  EXPECT_STREQ(shape[3].type, "number");
  EXPECT_EQ(shape[3].unit, "s");
  EXPECT_EQ(shape[3].says, "Anything ran.");
  EXPECT_EQ(shape[4].unit, "%");
  EXPECT_EQ(shape[5].unit, "");
}

TEST(Rows, AnEmptyTableHasItsColumns) {
  const Table table = Rows<SampleColumns>().take();
  EXPECT_EQ(table.rows(), 0U);
  EXPECT_EQ(table.columns().size(), SampleColumns::kCount);
}

}  // namespace
}  // namespace headrace::analysis
