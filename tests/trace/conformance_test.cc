// Traces that PyTorch and the Ascend profiler wrote, against figures that Python's json and decimal modules
// give.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

#include "headrace/trace/reader.h"
#include "trace/conformance_data.h"

namespace headrace::trace {
namespace {

struct ExpectedTrace {
  const char* file;
  std::size_t rows;
  std::size_t complete;
  std::int64_t duration_ns;
  std::int64_t first_ns;
  std::size_t correlations;
  std::size_t streams;
  std::size_t shapes;
  std::int64_t bytes;
  std::optional<std::int64_t> rank;
};

const ExpectedTrace kKinetoTraces[] = {
    {"amd_mi250", 160, 113, 52276266, 4203669603018756, 37, 16, 64, 0, {}},
    {"control", 109081, 74937, 3145078000, 1661203462584767000, 34142, 9450, 36528, 2321676764, 3},
    {"df_index_resolver", 216054, 123379, 9280747000, 1669783687352244000, 64663, 22290, 0, 5893131460, 1},
    {"resnet50_workers0", 75698, 44666, 4924245000, 1623142623460016000, 21019, 9096, 23622, 482082960, {}},
    {"resnet50_workers4", 71404, 41906, 4276502000, 1623212388426602000, 21343, 9258, 20538, 482087184, {}},
    {"sampled_rank-0", 4811, 4811, 7917027000, 1682725897226747000, 2408, 1204, 2021, 222097863, 0},
    {"sampled_rank-1", 4676, 4676, 8020966000, 1682725897227300000, 2308, 1154, 1991, 3362442928, 1},
    {"simple_add", 1310, 838, 306668311000, 1694039968933321000, 470, 139, 0, 244425120, 0},
    {"test", 105125, 68324, 5733877000, 1661938466240491000, 36799, 15632, 28878, 28460036508, 1},
    {"triton_example", 13, 8, 13693360730, 2413668742269099, 3, 2, 1, 0, {}},
};

class KinetoTrace : public ::testing::TestWithParam<ExpectedTrace> {};

TEST_P(KinetoTrace, IsReadAsOtherReadersReadIt) {
  const ExpectedTrace& expected = GetParam();
  const std::string path = conformance_file(std::string("kineto/") + expected.file + ".json.gz");
  HEADRACE_NEEDS_FILE(path);
  const TraceFile file = read_file(path);
  const Columns& columns = file.columns;
  EXPECT_TRUE(file.notes.clean()) << file.notes.sentences()[0];
  EXPECT_EQ(columns.size(), expected.rows);
  EXPECT_EQ(file.rank, expected.rank);
  std::size_t complete = 0;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  for (Row row = 0; row < columns.size(); ++row) {
    if (columns.phase[row] != 'X') continue;
    ++complete;
    first_ns = std::min(first_ns, columns.start_ns[row]);
  }
  EXPECT_EQ(complete, expected.complete);
  EXPECT_EQ(first_ns, expected.first_ns);
  EXPECT_EQ(std::accumulate(columns.duration_ns.begin(), columns.duration_ns.end(), std::int64_t{0}),
            expected.duration_ns);
  const auto present = [](std::int64_t value) { return value != kAbsent; };
  EXPECT_EQ(static_cast<std::size_t>(
                std::count_if(columns.correlation.begin(), columns.correlation.end(), present)),
            expected.correlations);
  EXPECT_EQ(static_cast<std::size_t>(std::count_if(columns.stream.begin(), columns.stream.end(), present)),
            expected.streams);
  EXPECT_EQ(columns.argument("Input Dims")->rows.size(), expected.shapes);
  const CompactIntegers& bytes = columns.argument("bytes")->integers;
  EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}), expected.bytes);
}

INSTANTIATE_TEST_SUITE_P(Files, KinetoTrace, ::testing::ValuesIn(kKinetoTraces), [](const auto& info) {
  std::string name = info.param.file;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(AscendTrace, HasQuotedTimeStampsAndNoObjectAroundItsEvents) {
  const std::string path =
      conformance_file("ascend/text_level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json");
  HEADRACE_NEEDS_FILE(path);
  const TraceFile file = read_file(path);
  EXPECT_TRUE(file.notes.clean()) << file.notes.sentences()[0];
  EXPECT_EQ(file.columns.size(), 10476U - 80U);
  EXPECT_EQ(file.columns.name_of(0), "aten::empty");
  EXPECT_EQ(file.columns.start_ns[0], 1736412474714258990);
  EXPECT_EQ(file.columns.duration_ns[0], 167560);
}

}  // namespace
}  // namespace headrace::trace
