// Databases of Ascend profilers: the columns of the JSON, and files that are damaged or hostile.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/trace/trace.h"
#include "trace/ascend/small_database.h"
#include "trace/ascend/small_run.h"
#include "trace/conformance_data.h"

namespace headrace::trace {
namespace {

using ascend::DatabaseFile;
using ascend::kSmallDatabase;

/// What tables are made of, of each complete event on a thread or as device work.
std::vector<std::string> described(const Trace& trace) {
  const Columns& columns = trace.columns();
  std::vector<std::string> all;
  for (Row row = 0; row < columns.size(); ++row) {
    const EventKind kind = trace.kinds[row];
    if (columns.phase[row] != 'X' || kind == EventKind::device_task) continue;
    std::string text = std::string(columns.name_of(row)) + "|" + std::string(columns.category_of(row));
    const auto add = [&](std::int64_t number) { text += "|" + std::to_string(number); };
    add(columns.start_ns[row]);
    add(columns.duration_ns[row]);
    const Row launch = trace.correlation.launch_of(row);
    add(launch == kNoRow ? -1 : columns.start_ns[launch]);
    const Row from = trace.calls.handed_over_by(launch == kNoRow ? row : launch);
    add(from == kNoRow ? -1 : columns.start_ns[from]);
    add(trace.steps.step_of(row));
    if (is_device_work(kind)) {
      add(columns.stream[row]);
      for (const char* name : {"device", "bytes"}) {
        const auto at = columns.argument(name)->find(row);
        add(at ? columns.argument(name)->integers[*at] : -1);
      }
    }
    all.push_back(text);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(AscendDatabase, GivesWhatTheJsonGives) {
  const DatabaseFile file(kSmallDatabase);
  const Trace database = load_trace(file.path());
  const std::string json = ascend::small_trace_view();
  MemoryBytes source(json);
  const Trace text = resolve(read_source(source, "trace_view.json"));
  EXPECT_EQ(described(database), described(text));
  EXPECT_EQ(database.rank, 5);
  EXPECT_EQ(database.file.notes.sentences(), std::vector<std::string>{});
  ASSERT_EQ(database.steps.all().size(), 1U);
  EXPECT_EQ(database.steps.all()[0].number, 7);
}

TEST(AscendDatabase, TextsOfTheSchemaBecomeMetadata) {
  const DatabaseFile file(kSmallDatabase);
  const TraceFile read = read_file(file.path());
  ASSERT_EQ(read.metadata.size(), 2U);
  EXPECT_EQ(read.metadata[0], std::pair(std::string("SCHEMA_VERSION"), std::string("\"1.0.0\"")));
  EXPECT_EQ(read.metadata[1].second, R"({"HCCL_ALGO": ""})");
}

TEST(AscendDatabase, MissingTablesAndColumnsAreSaid) {
  const DatabaseFile file(
      "CREATE TABLE STRING_IDS (id INTEGER, value TEXT); INSERT INTO STRING_IDS VALUES "
      "(1,'Add1'),(2,'AI_CORE');"
      "CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER);"
      "INSERT INTO COMPUTE_TASK_INFO VALUES (1, 9);"
      "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, globalTaskId INTEGER, taskType INTEGER, "
      "connectionId INTEGER);"
      "INSERT INTO TASK VALUES (10, 30, 9, 2, 7);"
      "CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER); INSERT INTO STEP_TIME VALUES (4, "
      "0, 50);");
  const Trace trace = load_trace(file.path());
  ASSERT_EQ(trace.device_rows.size(), 1U);
  EXPECT_EQ(trace.columns().name_of(trace.device_rows[0]), "Add1");
  ASSERT_EQ(trace.steps.all().size(), 1U);  // of STEP_TIME: no framework marked it
  EXPECT_EQ(trace.steps.all()[0].number, 4);
  const std::vector<std::string> notes = trace.file.notes.sentences();
  const auto says = [&](const char* text) { return std::count(notes.begin(), notes.end(), text) == 1; };
  EXPECT_TRUE(says("the database has no table CANN_API"));
  EXPECT_TRUE(says("table TASK has no column streamId"));
}

TEST(AscendDatabase, ImpossibleTimesAreCounted) {
  const DatabaseFile file(
      "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, "
      "globalTaskId INTEGER,"
      "globalPid INTEGER, taskType INTEGER, streamId INTEGER);"
      "INSERT INTO TASK VALUES (10, 5, 0, 0, 0, 0, 0, 0), ('x', 5, 0, 0, 0, 0, 0, 0),"
      "(9223372036854775807, 5, 0, 0, 0, 0, 0, 0), (NULL, NULL, 0, 0, 0, 0, 0, 0), (1, 2, 0, 0, 0, 0, 0, 0)");
  const TraceFile read = read_file(file.path());
  EXPECT_EQ(read.columns.size(), 1U);
  EXPECT_EQ(read.notes.skipped(), 4U);
}

std::string error_of(const std::string& path) {
  try {
    load_trace(path);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(AscendDatabase, OtherDatabasesAreRefusedInOneLine) {
  const DatabaseFile other("CREATE TABLE birds (name TEXT)");
  EXPECT_NE(
      error_of(other.path())
          .find("a SQLite database, but none that the Ascend profiler, Nsight Systems or rocprofv3 wrote"),
      std::string::npos);
  EXPECT_EQ(error_of(other.path()).find('\n'), std::string::npos);
}

TEST(AscendDatabase, ViewsAndVirtualTablesAreNotRead) {
  const DatabaseFile file(
      "CREATE TABLE STRING_IDS (id INTEGER, value TEXT);"
      "CREATE VIEW TASK AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS "
      "startNs FROM n;");
  EXPECT_NE(error_of(file.path()).find("none that the Ascend profiler"), std::string::npos);
}

TEST(AscendDatabase, DamageIsAnErrorThatNamesTheFile) {
  const DatabaseFile file(kSmallDatabase);
  std::ifstream in(file.path(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 1000) {
    try {
      read_bytes(whole.substr(0, size), "cut.db");
    } catch (const FormatError& error) {
      ++refused;
      EXPECT_EQ(error.path(), "cut.db");
    }
  }
  EXPECT_GT(refused, 5U);
  std::string changed = whole;
  for (std::size_t at = 100; at < changed.size(); at += 97)
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
  EXPECT_THROW(read_bytes(changed, "changed.db"), FormatError);
}

TEST(AscendDatabase, AStreamIsNone) {
  const std::string text("SQLite format 3\0abc", 19);
  MemoryBytes source(text);
  EXPECT_THROW(read_source(source, "x.db"), FormatError);
}

TEST(AscendDatabase, SampleHasEveryKernelOnce) {
  const std::string path = conformance_file(
      "ascend/db_level1/rank1_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_1.db");
  HEADRACE_NEEDS_FILE(path);
  const Trace trace = load_trace(path);
  EXPECT_EQ(trace.rank, 1);
  const auto count = [&](EventKind kind) {
    return std::count_if(trace.device_rows.begin(), trace.device_rows.end(),
                         [&](Row row) { return trace.kinds[row] == kind; });
  };
  EXPECT_EQ(count(EventKind::computation), 187);
  EXPECT_EQ(count(EventKind::collective), 4);
  EXPECT_EQ(count(EventKind::memory_copy), 24);
  for (const Row row : trace.device_rows) {
    const Row launch = trace.correlation.launch_of(row);
    ASSERT_NE(launch, kNoRow);
    EXPECT_NE(trace.calls.handed_over_by(launch), kNoRow);
  }
}

}  // namespace
}  // namespace headrace::trace
