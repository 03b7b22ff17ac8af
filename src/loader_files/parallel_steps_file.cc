#include "headrace/loader_files/parallel_steps_file.h"

#include <algorithm>
#include <limits>

#include "headrace/profile/errors.h"
#include "text_file.h"

namespace headrace::loader_files {
namespace {

constexpr std::size_t kMaxParts = 64;  // columns
constexpr std::int64_t kMaxRanks = 1 << 24;

/// Takes the number behind the last '_' off `name`.
std::optional<int> number_off(std::string_view& name) {
  const std::size_t at = name.rfind('_');
  if (at == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> value = whole_number(name.substr(at + 1));
  if (!value || *value < 0 || *value > kMaxRanks) return std::nullopt;
  name = name.substr(0, at);
  return static_cast<int>(*value);
}

}  // namespace

int ParallelPlace::stage() const noexcept { return rank / std::max(1, ranks / std::max(1, stages)) + 1; }

std::optional<ParallelPlace> parallel_place(std::string_view file_name) {
  std::string_view name = file_name;
  bool is_known = false;
  for (const std::string_view before : {"ascend_cluster_analyse_", "gpu_cluster_analyse_"}) {
    if (!name.starts_with(before)) continue;
    name.remove_prefix(before.size());
    is_known = true;
    break;
  }
  if (!is_known || !name.ends_with(".csv")) return std::nullopt;
  name.remove_suffix(4);
  const std::optional<int> rank = number_off(name);
  const std::optional<int> ranks = rank ? number_off(name) : std::nullopt;
  const std::optional<int> stages = ranks ? number_off(name) : std::nullopt;
  if (!stages || name.empty()) return std::nullopt;
  return ParallelPlace{std::string(name), std::max(1, *stages), std::max(1, *ranks), *rank};
}

ParallelStepsFile read_parallel_steps(std::string_view text, const std::string& path) {
  const std::vector<Row> rows = rows_of(text, path);
  if (rows.empty()) throw FormatError(path, 0, "a heading of column names");
  if (rows.front().size() > kMaxParts)
    throw FormatError(path, 0, "at most " + std::to_string(kMaxParts) + " columns");
  ParallelStepsFile file;
  file.columns = rows.front();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<double> values;
    for (std::size_t column = 0; column < file.columns.size(); ++column) {
      const std::optional<double> value =
          column < rows[i].size() ? number(rows[i][column]) : std::optional<double>();
      values.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    file.steps.push_back(std::move(values));
  }
  // Of all steps but the first, which the profiler may have cut off.
  if (file.steps.size() > 1) {
    file.average = std::move(file.steps.back());
    file.steps.pop_back();
  }
  return file;
}

}  // namespace headrace::loader_files
