// CSV as profilers write it.
#include "headrace/trace/csv_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/errors.h"

namespace headrace::trace {
namespace {

using Record = std::vector<std::string>;

std::vector<Record> records_of(std::string_view text) {
  MemoryBytes bytes(text);
  CsvReader reader(bytes, "test.csv");
  std::vector<Record> all;
  for (Record record; reader.next(record);) all.push_back(record);
  return all;
}

TEST(CsvReader, TrimsTabsAndKeepsQuotedLines) {
  const std::vector<Record> expected = {
      {"Name", "Start Time(us)", "Stack"},
      {"a", "1736412474730135.222", "f(1);\r\ng(2), \"x\"\n"},
      {"\"32,3\"", "", " "},
  };
  EXPECT_EQ(records_of("\xEF\xBB\xBFName,Start Time(us),Stack\r\na,1736412474730135.222\t,\"f(1);\r\ng(2), "
                       "\"\"x\"\"\n\"\t\r\n\n\"\"\"32,3\"\"\",,\" \""),
            expected);
}

TEST(CsvReader, RaggedAndEmptyFiles) {
  EXPECT_TRUE(records_of("").empty());
  EXPECT_TRUE(records_of("\r\n\n").empty());
  const std::vector<Record> expected = {{"a", "b"}, {"1"}, {"1", "2", "3"}};
  EXPECT_EQ(records_of("a,b\n1\n1,2,3\n"), expected);
}

TEST(CsvReader, AFileThatEndsInAQuoteIsCut) {
  MemoryBytes bytes("a\n\"open");
  CsvReader reader(bytes, "test.csv");
  Record record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_FALSE(reader.cut());
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(record, Record{"open"});
  EXPECT_TRUE(reader.cut());
}

TEST(CsvReader, RefusesFieldsAndColumnsWithoutEnd) {
  EXPECT_THROW(records_of("\"" + std::string(CsvReader::kLongestField + 1, 'x')), FormatError);
  EXPECT_THROW(records_of(std::string(CsvReader::kMaxFields + 1, ',')), FormatError);
}

}  // namespace
}  // namespace headrace::trace
