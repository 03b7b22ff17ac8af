#include "headrace/analysis/second_opinions/folder_tables.h"

#include <string_view>
#include <utility>
#include <variant>

#include "headrace/profile/errors.h"

namespace headrace::analysis {
namespace {

/// The table that is made of all ranks of the folder.
constexpr std::string_view kRanks = "ranks";

}  // namespace

std::vector<std::string> folder_tables(const std::string& folder, int rank) {
  const loader_files::ProfilerFolder found = loader_files::find_profiler_files(folder);
  const loader_files::RankFolder* wanted = found.rank(rank);
  if (wanted == nullptr) return {};
  std::vector<std::string> names = loader_files::table_names(*wanted);
  if (loader_files::has_ranks_table(found)) names.emplace_back(kRanks);
  return names;
}

Table folder_table(const std::string& folder, int rank, const std::string& name,
                   const loader_files::TableQuery& query) {
  const loader_files::ProfilerFolder found = loader_files::find_profiler_files(folder);
  const loader_files::RankFolder* wanted = found.rank(rank);
  if (wanted == nullptr) throw UsageError(folder + ": no file of rank " + std::to_string(rank));
  const bool of_all = name == kRanks && loader_files::has_ranks_table(found);
  loader_files::FileTable read = loader_files::queried(
      of_all ? loader_files::ranks_table(found) : loader_files::read_table(*wanted, name), query);
  Table table;
  for (loader_files::FileColumn& column : read.columns) {
    if (auto* texts = std::get_if<std::vector<std::string>>(&column.values)) {
      Texts packed;
      packed.reserve(texts->size());
      for (const std::string& text : *texts) packed.push_back(text);
      table.add(column.name, std::move(packed));
    } else if (auto* whole = std::get_if<std::vector<std::int64_t>>(&column.values)) {
      table.add(column.name, std::move(*whole));
    } else {
      table.add(column.name, std::move(std::get<std::vector<double>>(column.values)));
    }
  }
  table.notes = std::move(read.notes);
  return table;
}

std::string folder_timeline(const std::string& folder, int rank) {
  const loader_files::ProfilerFolder found = loader_files::find_profiler_files(folder);
  const loader_files::RankFolder* wanted = found.rank(rank);
  return wanted == nullptr ? "" : wanted->path(loader_files::FileKind::timeline);
}

}  // namespace headrace::analysis
