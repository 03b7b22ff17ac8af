#include "analysis/device/database_kernels.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/columns.h"
#include "trace/ascend/database.h"

namespace headrace::analysis::device {
namespace {

using trace::ascend::Database;
using trace::ascend::ProfileFolder;
using trace::ascend::TableRows;

constexpr std::array<const char*, 9> kTexts = {
    "name",          "type",          "accelerator_core",  "input_shapes",  "input_data_types",
    "input_formats", "output_shapes", "output_data_types", "output_formats"};

/// What COMPUTE_TASK_INFO says of a task; texts by their number.
struct Kernel {
  std::array<std::int64_t, kTexts.size()> texts{};
  double block_dim = kNoFigure;
  double mix_block_dim = kNoFigure;
  double wait_s = kNoFigure;
};

class Kernels {
 public:
  void add(const ProfileFolder& profile) {
    Database database(profile.database);
    std::unordered_map<std::int64_t, std::string> strings;
    TableRows texts(database, "STRING_IDS", {"id", "value"});
    while (texts.next()) {
      if (const auto id = texts.integer(0)) strings.insert_or_assign(*id, std::string(texts.text(1)));
    }
    const std::unordered_map<std::int64_t, Kernel> kernels = read_kernels(database);
    TableRows tasks(database, "TASK", {"globalTaskId", "startNs", "endNs", "streamId", "taskId"});
    while (tasks.next()) {
      const auto id = tasks.integer(0);
      const auto kernel = id ? kernels.find(*id) : kernels.end();
      const auto start = tasks.integer(1);
      const auto end = tasks.integer(2);
      if (kernel == kernels.end() || !start || !end || *start < 0 || *end < *start) continue;
      ranks_.push_back(profile.rank.value_or(trace::kAbsent));
      start_ns_.push_back(*start);
      duration_s_.push_back(seconds(*end - *start));
      streams_.push_back(tasks.integer(3).value_or(trace::kAbsent));
      tasks_.push_back(tasks.integer(4).value_or(trace::kAbsent));
      for (std::size_t i = 0; i < kTexts.size(); ++i) {
        const auto text = strings.find(kernel->second.texts[i]);
        texts_[i].push_back(text == strings.end() ? std::string_view() : std::string_view(text->second));
      }
      wait_s_.push_back(kernel->second.wait_s);
      block_dim_.push_back(kernel->second.block_dim);
      mix_block_dim_.push_back(kernel->second.mix_block_dim);
    }
    add_collectives(database, strings, profile.rank.value_or(trace::kAbsent));
  }

  Table take() {
    Table table;
    table.add("rank", std::move(ranks_))
        .add("task_id", std::move(tasks_))
        .add("stream_id", std::move(streams_));
    for (std::size_t i = 0; i < 3; ++i) table.add(kTexts[i], std::move(texts_[i]));
    table.add("start_time_ns", std::move(start_ns_))
        .add("duration_s", std::move(duration_s_))
        .add("wait_time_s", std::move(wait_s_))
        .add("block_dim", std::move(block_dim_))
        .add("mix_block_dim", std::move(mix_block_dim_));
    for (std::size_t i = 3; i < kTexts.size(); ++i) table.add(kTexts[i], std::move(texts_[i]));
    return table;
  }

 private:
  /// Rows of their own, as in the CSV file.
  void add_collectives(Database& database, const std::unordered_map<std::int64_t, std::string>& strings,
                       std::int64_t rank) {
    TableRows rows(database, "COMMUNICATION_OP", {"startNs", "endNs", "opName", "opType"});
    const auto text = [&](std::optional<std::int64_t> id) {
      const auto at = id ? strings.find(*id) : strings.end();
      return at == strings.end() ? std::string_view() : std::string_view(at->second);
    };
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto end = rows.integer(1);
      if (!start || !end || *start < 0 || *end < *start) continue;
      ranks_.push_back(rank);
      tasks_.push_back(trace::kAbsent);
      streams_.push_back(trace::kAbsent);
      start_ns_.push_back(*start);
      duration_s_.push_back(seconds(*end - *start));
      texts_[0].push_back(text(rows.integer(2)));
      texts_[1].push_back(text(rows.integer(3)));
      texts_[2].push_back("HCCL");
      for (std::size_t i = 3; i < kTexts.size(); ++i) texts_[i].push_back({});
      for (Numbers* column : {&wait_s_, &block_dim_, &mix_block_dim_}) column->push_back(kNoFigure);
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
      for (std::size_t i = 0; i < kTexts.size(); ++i)
        kernel.texts[i] = rows.integer(static_cast<int>(i) + 1).value_or(trace::kAbsent);
      kernel.block_dim = rows.number(10).value_or(kNoFigure);
      kernel.mix_block_dim = rows.number(11).value_or(kNoFigure);
      if (const auto wait = rows.number(12)) kernel.wait_s = *wait / 1e9;
      kernels.insert_or_assign(*id, kernel);
    }
    return kernels;
  }

  Integers ranks_, tasks_, streams_, start_ns_;
  Numbers duration_s_, wait_s_, block_dim_, mix_block_dim_;
  std::array<Texts, kTexts.size()> texts_;
};

}  // namespace

bool has_database_kernels(const ProfileFolder& profile) {
  if (profile.database.empty()) return false;
  try {
    const Database database(profile.database);
    return database.has_table("TASK") && database.has_table("COMPUTE_TASK_INFO");
  } catch (const FormatError&) {
    return false;  // loading the profile's events says what is wrong with it
  }
}

std::optional<Table> database_kernels(std::span<const ProfileFolder> profiles) {
  Kernels kernels;
  bool any = false;
  for (const ProfileFolder& profile : profiles) {
    if (!has_database_kernels(profile)) continue;
    any = true;
    kernels.add(profile);
  }
  if (!any) return std::nullopt;
  return kernels.take();
}

}  // namespace headrace::analysis::device
