#include "analysis/device/database_kernels.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/analysis/device/figures.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/columns.h"
#include "trace/database.h"

namespace headrace::analysis::device {
namespace {

using trace::Database;
using trace::TableRows;
using trace::ascend::ProfileFolder;

/// What COMPUTE_TASK_INFO says of a task; texts by their number.
struct Kernel {
  std::array<std::int64_t, 9> texts{};
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
      const Kernel& of = kernel->second;
      const auto text = [&](std::size_t i) { return text_at(strings, of.texts[i]); };
      rows_.add(profile.rank.value_or(trace::kAbsent), tasks.integer(4).value_or(trace::kAbsent),
                tasks.integer(3).value_or(trace::kAbsent), text(0), text(1), text(2), *start,
                seconds(*end - *start), of.wait_s, of.block_dim, of.mix_block_dim, text(3), text(4), text(5),
                text(6), text(7), text(8));
    }
    add_collectives(database, strings, profile.rank.value_or(trace::kAbsent));
  }

  Table take() { return rows_.take(); }

 private:
  /// Rows of their own, as in the CSV file.
  void add_collectives(Database& database, const std::unordered_map<std::int64_t, std::string>& strings,
                       std::int64_t rank) {
    TableRows rows(database, "COMMUNICATION_OP", {"startNs", "endNs", "opName", "opType"});
    while (rows.next()) {
      const auto start = rows.integer(0);
      const auto end = rows.integer(1);
      if (!start || !end || *start < 0 || *end < *start) continue;
      constexpr std::string_view kNone;
      rows_.add(rank, trace::kAbsent, trace::kAbsent, text_at(strings, rows.integer(2)),
                text_at(strings, rows.integer(3)), "HCCL", *start, seconds(*end - *start), kNoFigure,
                kNoFigure, kNoFigure, kNone, kNone, kNone, kNone, kNone, kNone);
    }
  }

  static std::string_view text_at(const std::unordered_map<std::int64_t, std::string>& strings,
                                  std::optional<std::int64_t> id) {
    const auto at = id ? strings.find(*id) : strings.end();
    return at == strings.end() ? std::string_view() : std::string_view(at->second);
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
