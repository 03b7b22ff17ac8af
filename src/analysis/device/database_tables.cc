#include "analysis/device/profiler_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/device/named_calls.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/columns.h"
#include "trace/database.h"

namespace headrace::analysis::device {
namespace {

using trace::Database;
using trace::TableRows;
using trace::ascend::ProfileFolder;
using Words = std::unordered_map<std::int64_t, std::string>;

constexpr std::string_view kApiStatistic = "api_statistic";
constexpr std::string_view kCounters = "counters";
constexpr std::string_view kKernels = "kernel_details";
constexpr std::string_view kSteps = "step_trace_time";
constexpr std::string_view kMemoryRecord = "memory_record";

enum class Unit : std::uint8_t { text, word, module, stamp_ns, number, device };
constexpr double kNanoseconds = 1e9;
constexpr double kMicrosPerSecond = 1e6;
constexpr double kKilobytes = 1024;
constexpr double kMegabytes = 1024.0 * 1024;

/// A column of the database, and what the CSV file calls it. A number is divided by `scale`.
struct StoredColumn {
  const char* stored;
  const char* name;
  Unit unit;
  double scale = 1;
};

struct StoredTable {
  std::string_view name;
  const char* stored;
  std::vector<StoredColumn> columns;
};

const std::vector<StoredTable>& stored_tables() {
  using enum Unit;
  static const std::vector<StoredColumn> kStepColumns = {
      {"step", "step", text},
      {"computing", "computing_s", number, kMicrosPerSecond},
      {"communication_not_overlapped", "communication_not_overlapped_s", number, kMicrosPerSecond},
      {"overlapped", "overlapped_s", number, kMicrosPerSecond},
      {"communication", "communication_s", number, kMicrosPerSecond},
      {"free", "free_s", number, kMicrosPerSecond},
      {"stage", "stage_s", number, kMicrosPerSecond},
      {"bubble", "bubble_s", number, kMicrosPerSecond},
      {"communication_not_overlapped_and_exclude_receive",
       "communication_not_overlapped_and_exclude_receive_s", number, kMicrosPerSecond},
      {"preparing", "preparing_s", number, kMicrosPerSecond}};
  static const std::vector<StoredTable> kTables = {
      {kMemoryRecord,
       "MEMORY_RECORD",
       {{"component", "component", word},
        {"timestamp", "timestamp_ns", stamp_ns},
        {"totalAllocated", "total_allocated_mb", number, kMegabytes},
        {"totalReserved", "total_reserved_mb", number, kMegabytes},
        {"totalActive", "total_active_mb", number, kMegabytes},
        {"streamPtr", "stream_ptr", number},
        {"deviceId", "device_type", device}}},
      {"operator_memory",
       "OP_MEMORY",
       {{"name", "name", word},
        {"size", "size_kb", number, kKilobytes},
        {"allocationTime", "allocation_time_ns", stamp_ns},
        {"releaseTime", "release_time_ns", stamp_ns},
        {"activeReleaseTime", "active_release_time_ns", stamp_ns},
        {"duration", "duration_s", number, kNanoseconds},
        {"activeDuration", "active_duration_s", number, kNanoseconds},
        {"allocationTotalAllocated", "allocation_total_allocated_mb", number, kMegabytes},
        {"allocationTotalReserved", "allocation_total_reserved_mb", number, kMegabytes},
        {"allocationTotalActive", "allocation_total_active_mb", number, kMegabytes},
        {"releaseTotalAllocated", "release_total_allocated_mb", number, kMegabytes},
        {"releaseTotalReserved", "release_total_reserved_mb", number, kMegabytes},
        {"releaseTotalActive", "release_total_active_mb", number, kMegabytes},
        {"streamPtr", "stream_ptr", number},
        {"deviceId", "device_type", device}}},
      {"npu_module_mem",
       "NPU_MODULE_MEM",
       {{"moduleId", "component", module},
        {"timestampNs", "timestamp_ns", stamp_ns},
        {"totalReserved", "total_reserved_mb", number, kMegabytes},
        {"deviceId", "device", device}}},
      {kSteps, "StepTraceTime", kStepColumns},
      {kClusterSteps, "ClusterStepTraceTime", [] {
         std::vector<StoredColumn> columns = kStepColumns;
         columns.insert(columns.end(), {{"type", "type", text}, {"index", "index", text}});
         return columns;
       }()}};
  return kTables;
}

Words words_of(Database& database, const char* table, const char* text) {
  Words words;
  TableRows rows(database, table, {"id", text});
  while (rows.next()) {
    if (const auto id = rows.integer(0)) words.insert_or_assign(*id, std::string(rows.text(1)));
  }
  return words;
}

std::string_view word_at(const Words& words, std::optional<std::int64_t> id) {
  const auto found = id ? words.find(*id) : words.end();
  return found == words.end() ? std::string_view() : std::string_view(found->second);
}

/// Rows of one stored table, of all profiles.
class StoredRows {
 public:
  explicit StoredRows(const StoredTable& table) : table_(table) {
    for (const StoredColumn& column : table.columns) columns_.push_back(empty(column.unit));
  }

  void add(Database& database, std::int64_t rank) {
    const Words words = words_of(database, "STRING_IDS", "value");
    const Words modules = words_of(database, "ENUM_MODULE", "name");
    if (table_.name == kMemoryRecord) add_process_memory(database, words, rank);
    std::vector<std::string> stored;
    for (const StoredColumn& column : table_.columns) stored.emplace_back(column.stored);
    TableRows rows(database, table_.stored, stored);
    while (rows.next()) {
      ranks_.push_back(rank);
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const int at = static_cast<int>(i);
        const auto [unit, scale] = std::pair(table_.columns[i].unit, table_.columns[i].scale);
        if (unit == Unit::number) {
          numbers(i).push_back(scaled(rows.number(at), scale));
        } else if (unit == Unit::stamp_ns) {
          std::get<Integers>(columns_[i]).push_back(rows.integer(at).value_or(trace::kAbsent));
        } else {
          texts(i).push_back(
              unit == Unit::text ? std::string(rows.text(at))
              : unit == Unit::device
                  ? device_text(rows.integer(at))
                  : std::string(word_at(unit == Unit::word ? words : modules, rows.integer(at))));
        }
      }
    }
  }

  Table take() {
    Table table;
    table.add("rank", std::move(ranks_));
    for (std::size_t i = 0; i < columns_.size(); ++i)
      table.add(table_.columns[i].name, std::move(columns_[i]));
    return table;
  }

 private:
  using Values = std::variant<Integers, Numbers, Texts>;

  static Values empty(Unit unit) {
    if (unit == Unit::number) return Numbers{};
    return unit == Unit::stamp_ns ? Values(Integers{}) : Values(Texts{});
  }
  Texts& texts(std::size_t column) { return std::get<Texts>(columns_[column]); }
  Numbers& numbers(std::size_t column) { return std::get<Numbers>(columns_[column]); }
  static double scaled(std::optional<double> value, double unit) { return value ? *value / unit : kNoFigure; }
  static std::string device_text(std::optional<std::int64_t> device) {
    return device ? "NPU:" + std::to_string(*device) : "";
  }

  /// The CSV file begins with what the process has reserved in all: component APP, of the table NPU_MEM.
  void add_process_memory(Database& database, const Words& words, std::int64_t rank) {
    TableRows rows(database, "NPU_MEM", {"type", "timestampNs", "ddr", "hbm", "deviceId"});
    while (rows.next()) {
      const auto ddr = rows.number(2);
      const auto hbm = rows.number(3);
      if (word_at(words, rows.integer(0)) != "app" || !ddr || !hbm) continue;
      ranks_.push_back(rank);
      texts(0).push_back("APP");
      std::get<Integers>(columns_[1]).push_back(rows.integer(1).value_or(trace::kAbsent));
      numbers(2).push_back(kNoFigure);
      numbers(3).push_back(scaled(*ddr + *hbm, kMegabytes));
      numbers(4).push_back(kNoFigure);
      numbers(5).push_back(kNoFigure);
      texts(6).push_back(device_text(rows.integer(4)));
    }
  }

  const StoredTable& table_;
  Integers ranks_;
  std::vector<Values> columns_;
};

/// Calls of CANN by level and name: the most total time first within a level.
class ApiStatistic {
 public:
  void add(Database& database, std::int64_t rank) {
    const Words words = words_of(database, "STRING_IDS", "value");
    const Words levels = words_of(database, "ENUM_API_TYPE", "name");
    std::map<std::pair<std::int64_t, std::int64_t>, CallStatistics> sums;
    TableRows rows(database, "CANN_API", {"startNs", "endNs", "type", "name"});
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto end = rows.integer(1);
      const auto type = rows.integer(2);
      const auto name = rows.integer(3);
      if (!start || !end || !type || !name || *start < 0 || *end < *start) continue;
      sums[{*type, *name}].add(*end - *start);
    }
    std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, CallStatistics>> sorted(sums.begin(),
                                                                                         sums.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.first.first != b.first.first ? a.first.first < b.first.first
                                            : a.second.total_ns() > b.second.total_ns();
    });
    for (const auto& [key, sum] : sorted)
      rows_.add(rank, word_at(levels, key.first), word_at(words, key.second), seconds(sum.total_ns()),
                sum.calls(), sum.mean_s(), seconds(sum.shortest_ns()), seconds(sum.longest_ns()),
                sum.variance_us2());
  }

  Table take() {
    rows_.note("variance is in square microseconds, as in the CSV file");
    return rows_.take();
  }

 private:
  Rows<ApiStatisticColumns> rows_;
};

class CounterRows {
 public:
  void add(Database& database, std::int64_t rank) {
    for (const trace::ascend::Counter& counter : trace::ascend::read_counters(database)) {
      for (const auto& [at_ns, value] : counter.values)
        rows_.add(rank, counter.process, counter.name, at_ns, value, counter.unit);
    }
  }

  Table take() { return rows_.take(); }

 private:
  Rows<CountersColumns> rows_;
};

/// A task in COMPUTE_TASK_INFO; texts by their number.
struct Kernel {
  std::array<std::int64_t, 9> texts{};
  double block_dim = kNoFigure;
  double mix_block_dim = kNoFigure;
  double wait_s = kNoFigure;
};

class KernelRows {
 public:
  void add(Database& database, std::int64_t rank) {
    const Words strings = words_of(database, "STRING_IDS", "value");
    const std::unordered_map<std::int64_t, Kernel> kernels = read_kernels(database);
    TableRows tasks(database, "TASK", {"globalTaskId", "startNs", "endNs", "streamId", "taskId"});
    while (tasks.next()) {
      const auto id = tasks.integer(0);
      const auto kernel = id ? kernels.find(*id) : kernels.end();
      const auto start = tasks.integer(1);
      const auto end = tasks.integer(2);
      if (kernel == kernels.end() || !start || !end || *start < 0 || *end < *start) continue;
      const Kernel& of = kernel->second;
      const auto text = [&](std::size_t i) { return word_at(strings, of.texts[i]); };
      rows_.add(rank, tasks.integer(4).value_or(trace::kAbsent), tasks.integer(3).value_or(trace::kAbsent),
                text(0), text(1), text(2), *start, seconds(*end - *start), of.wait_s, of.block_dim,
                of.mix_block_dim, text(3), text(4), text(5), text(6), text(7), text(8));
    }
    add_collectives(database, strings, rank);
  }

  Table take() { return rows_.take(); }

 private:
  /// Rows of their own, as in the CSV file.
  void add_collectives(Database& database, const Words& strings, std::int64_t rank) {
    TableRows rows(database, "COMMUNICATION_OP", {"startNs", "endNs", "opName", "opType"});
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto end = rows.integer(1);
      if (!start || !end || *start < 0 || *end < *start) continue;
      constexpr std::string_view kNone;
      rows_.add(rank, trace::kAbsent, trace::kAbsent, word_at(strings, rows.integer(2)),
                word_at(strings, rows.integer(3)), "HCCL", *start, seconds(*end - *start), kNoFigure,
                kNoFigure, kNoFigure, kNone, kNone, kNone, kNone, kNone, kNone);
    }
  }

  static std::unordered_map<std::int64_t, Kernel> read_kernels(Database& database) {
    std::unordered_map<std::int64_t, Kernel> kernels;
    TableRows rows(
        database, "COMPUTE_TASK_INFO",
        {"globalTaskId", "name", "opType", "taskType", "inputShapes", "inputDataTypes", "inputFormats",
         "outputShapes", "outputDataTypes", "outputFormats", "blockDim", "mixBlockDim", "waitNs"});
    while (rows.next()) {
      const auto id = rows.integer(0);
      if (!id) continue;
      Kernel kernel;
      for (std::size_t i = 0; i < kernel.texts.size(); ++i)
        kernel.texts[i] = rows.integer(static_cast<int>(i) + 1).value_or(trace::kAbsent);
      kernel.block_dim = rows.number(10).value_or(kNoFigure);
      kernel.mix_block_dim = rows.number(11).value_or(kNoFigure);
      if (const auto wait = rows.number(12)) kernel.wait_s = *wait / 1e9;
      kernels.insert_or_assign(*id, kernel);
    }
    return kernels;
  }

  Rows<KernelDetailsColumns> rows_;
};

constexpr std::array kCounterTables = {"AICORE_FREQ",         "HBM",    "LLC", "NPU_MEM",
                                       "SOC_BANDWIDTH_LEVEL", "ACC_PMU"};

bool has(const Database& database, std::string_view name) {
  if (name == kApiStatistic) return database.has_table("CANN_API");
  if (name == kKernels) return database.has_table("TASK") && database.has_table("COMPUTE_TASK_INFO");
  if (name == kCounters) {
    return std::any_of(kCounterTables.begin(), kCounterTables.end(),
                       [&](const char* table) { return database.has_table(table); });
  }
  return std::any_of(stored_tables().begin(), stored_tables().end(), [&](const StoredTable& table) {
    return table.name == name && database.has_table(table.stored);
  });
}

/// Calls `use` with the rows of the table, none yet, if there is one of this name.
template <class Use>
void with_rows_of(std::string_view name, Use&& use) {
  if (name == kApiStatistic) return use(ApiStatistic());
  if (name == kCounters) return use(CounterRows());
  if (name == kKernels) return use(KernelRows());
  for (const StoredTable& table : stored_tables()) {
    if (table.name == name) return use(StoredRows(table));
  }
}

/// The file that has the table: the profiler's, or that of its analysis. Empty if there is none.
const std::string& file_of(const ProfileFolder& profile, std::string_view name) {
  return name == kSteps ? profile.analysis_database : profile.database;
}

}  // namespace

std::vector<std::string> database_tables(const Database& database) {
  std::vector<std::string> names;
  for (const std::string_view name : {kApiStatistic, kCounters, kKernels}) {
    if (has(database, name)) names.emplace_back(name);
  }
  for (const StoredTable& table : stored_tables()) {
    if (database.has_table(table.stored)) names.emplace_back(table.name);
  }
  return names;
}

std::vector<std::string> database_tables(const ProfileFolder& profile) {
  std::vector<std::string> names;
  for (const std::string& file : {profile.database, profile.analysis_database}) {
    if (file.empty()) continue;
    try {
      for (std::string& name : database_tables(Database(file))) {
        if (file_of(profile, name) == file) names.push_back(std::move(name));
      }
    } catch (const FormatError&) {
      // Loading the profile's events, or one of the tables, says what is wrong with it.
    }
  }
  return names;
}

Table database_table(Database& database, std::int64_t rank, const std::string& name) {
  Table table;
  with_rows_of(name, [&](auto rows) {
    rows.add(database, rank);
    table = rows.take();
  });
  return table;
}

std::optional<Table> database_table(std::span<const ProfileFolder> profiles, const std::string& name) {
  std::optional<Table> table;
  with_rows_of(name, [&](auto rows) {
    bool any = false;
    for (const ProfileFolder& profile : profiles) {
      if (file_of(profile, name).empty()) continue;
      Database database(file_of(profile, name));
      if (!has(database, name)) continue;
      any = true;
      rows.add(database, profile.rank.value_or(trace::kAbsent));
    }
    if (any) table = rows.take();
  });
  return table;
}

}  // namespace headrace::analysis::device
