// Sources of the figures of a job's ranks: their own files, or the vendor's summary.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>

#include "analysis/device/profiler_tables.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/profile_table.h"
#include "headrace/analysis/device/steps.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
#include "headrace/trace/columns.h"
#include "trace/database.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using trace::Database;
using trace::ascend::Communication;

/// A group of ranks, and whether they pass data along a pipeline.
struct RankGroup {
  std::set<std::int64_t> ranks;
  bool point_to_point = false;
};

/// Groups of ranks, by union and find.
class Unions {
 public:
  void add(std::int64_t rank) { parent_.try_emplace(rank, rank); }
  std::int64_t find(std::int64_t rank) {
    add(rank);
    while (parent_[rank] != rank) rank = parent_[rank] = parent_[parent_[rank]];
    return rank;
  }
  void unite(std::int64_t a, std::int64_t b) { parent_[find(std::max(a, b))] = find(std::min(a, b)); }

 private:
  std::map<std::int64_t, std::int64_t> parent_;
};

std::vector<std::vector<std::int64_t>> stages_of(const std::set<std::int64_t>& ranks,
                                                 const std::vector<RankGroup>& groups) {
  Unions pipelines;
  for (const std::int64_t rank : ranks) pipelines.add(rank);
  bool any_pipeline = false;
  for (const RankGroup& group : groups) {
    if (!group.point_to_point || group.ranks.size() < 2) continue;
    any_pipeline = true;
    for (const std::int64_t rank : group.ranks) pipelines.unite(*group.ranks.begin(), rank);
  }
  if (!any_pipeline) return {std::vector<std::int64_t>(ranks.begin(), ranks.end())};
  Unions stages;
  for (const std::int64_t rank : ranks) stages.add(rank);
  for (const RankGroup& group : groups) {
    if (group.point_to_point) continue;
    std::set<std::int64_t> seen;
    const bool once = std::all_of(group.ranks.begin(), group.ranks.end(), [&](std::int64_t rank) {
      return seen.insert(pipelines.find(rank)).second;
    });
    if (!once) continue;
    for (const std::int64_t rank : group.ranks) stages.unite(*group.ranks.begin(), rank);
  }
  std::map<std::int64_t, std::vector<std::int64_t>> found;
  for (const std::int64_t rank : ranks) found[stages.find(rank)].push_back(rank);
  std::vector<std::vector<std::int64_t>> result;
  for (auto& [first, members] : found) result.push_back(std::move(members));
  return result;
}

/// Groups by the ranks that have their operations.
std::vector<RankGroup> groups_of(const Communication& communication) {
  std::map<std::pair<std::string, bool>, RankGroup> found;
  for (const trace::ascend::CommunicationTime& time : communication.times) {
    const trace::ascend::CommunicationName& of = time.of;
    if (of.operation.starts_with("Total Op Info")) continue;
    RankGroup& group = found[{of.group, of.point_to_point}];
    group.ranks.insert(of.rank);
    group.point_to_point = of.point_to_point;
  }
  std::vector<RankGroup> groups;
  for (auto& [name, group] : found) groups.push_back(std::move(group));
  return groups;
}

/// The ranks in "(0, 1, 2)", in their order.
std::vector<std::int64_t> ranks_in(std::string_view text) {
  std::vector<std::int64_t> ranks;
  for (std::size_t at = 0; at < text.size();) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc()) {
      ++at;
      continue;
    }
    ranks.push_back(rank);
    at = static_cast<std::size_t>(end - text.data());
  }
  return ranks;
}

/// Adds a set that is neither empty nor there already.
void add_set(std::vector<std::int64_t> ranks, std::vector<std::vector<std::int64_t>>& sets) {
  if (!ranks.empty() && std::find(sets.begin(), sets.end(), ranks) == sets.end())
    sets.push_back(std::move(ranks));
}

/// A column by name, null if the table has none.
const Column* find_column(const Table& table, std::string_view name) {
  const auto at = std::find_if(table.columns().begin(), table.columns().end(),
                               [&](const Column& column) { return column.name == name; });
  return at == table.columns().end() ? nullptr : &*at;
}

/// The field of a column of integers or texts, "" for another or none.
std::string text_at(const Column* column, std::size_t row) {
  if (column == nullptr) return "";
  if (const auto* texts = std::get_if<Texts>(&column->values)) return std::string((*texts)[row]);
  const auto* integers = std::get_if<Integers>(&column->values);
  return integers == nullptr ? "" : std::to_string((*integers)[row]);
}

/// Rows of a table with the columns of step_trace_time. `rank_of` takes a row; negative: the row is no
/// rank's.
template <class RankOf>
void add_steps(const Table& table, ClusterData& data, RankOf rank_of) {
  std::array<const Numbers*, StepTimeColumns::kCount> columns{};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view name = StepTimeColumns::names()[i];
    const Column* column = find_column(table, name);
    // The file's own name of one of them is longer.
    if (name == "not_overlapped_exclude_receive_s" && column == nullptr)
      column = find_column(table, "communication_not_overlapped_and_exclude_receive_s");
    if (column != nullptr) columns[i] = std::get_if<Numbers>(&column->values);
  }
  const Column* steps = find_column(table, "step");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ClusterStep step{text_at(steps, row), rank_of(row)};
    for (std::size_t i = 0; i < columns.size(); ++i)
      step.parts[i] = columns[i] == nullptr ? kNoFigure : (*columns[i])[row];
    data.steps.push_back(std::move(step));
  }
}

void add_steps(const Table& table, ClusterData& data) {
  const Integers& ranks = table.integers("rank");
  add_steps(table, data, [&](std::size_t row) { return ranks[row]; });
}

void find_stages(ClusterData& data) {
  std::set<std::int64_t> ranks;
  for (const ClusterStep& step : data.steps) ranks.insert(step.rank);
  if (!ranks.empty()) data.stages = stages_of(ranks, groups_of(data.communication));
}

fs::path summary_folder(const std::string& folder) {
  std::error_code error;
  const fs::path inner = fs::path(folder) / "cluster_analysis_output";
  return fs::is_directory(inner, error) ? inner : fs::path(folder);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

constexpr const char* kStepsFile = "cluster_step_trace_time.csv";
constexpr const char* kCommunicationFile = "cluster_communication.json";
constexpr const char* kMatrixFile = "cluster_communication_matrix.json";
constexpr const char* kDatabaseFile = "cluster_analysis.db";

/// Steps of ranks and stages.
void read_steps(const Table& table, ClusterData& data) {
  const Texts& types = table.texts("type");
  const Column& index = table.column("index");
  add_steps(table, data, [&](std::size_t row) {
    std::vector<std::int64_t> members = ranks_in(text_at(&index, row));
    const bool is_rank = types[row] == "rank" && members.size() == 1;
    const std::int64_t rank = is_rank ? members[0] : trace::kAbsent;
    if (types[row] == "stage") add_set(std::move(members), data.stages);
    return rank;
  });
  std::erase_if(data.steps, [](const ClusterStep& step) { return step.rank < 0; });
}

bool has_texts(const fs::path& folder) {
  return is_file(folder / kStepsFile) || is_file(folder / kCommunicationFile) ||
         is_file(folder / kMatrixFile);
}

}  // namespace

ClusterData cluster_of(std::span<const trace::Trace> traces,
                       std::span<const trace::ascend::ProfileFolder> profiles) {
  ClusterData data;
  if (!traces.empty()) {
    add_steps(step_time(traces), data);
  } else {
    try {
      add_steps(profile_table(profiles, "step_trace_time"), data);
    } catch (const Error& error) {
      data.notes.emplace_back(error.what());
    }
  }
  data.communication = trace::ascend::read_communication(profiles);
  for (const FormatError& failure : data.communication.failures) data.notes.emplace_back(failure.what());
  find_stages(data);
  return data;
}

void read_cluster_database(Database& database, ClusterData& data) {
  constexpr std::array kTables{"ClusterStepTraceTime", "ClusterCommunicationTime",
                               "ClusterCommunicationBandwidth", "ClusterCommunicationMatrix"};
  if (std::none_of(kTables.begin(), kTables.end(), [&](auto table) { return database.has_table(table); }))
    throw FormatError(database.path(), 0,
                      "a database of a cluster's analysis with a table ClusterStepTraceTime");
  for (const char* table : kTables) {
    if (!database.has_table(table)) data.notes.push_back(database.path() + " has no table " + table);
  }
  read_steps(database_table(database, trace::kAbsent, kClusterSteps), data);
  trace::ascend::read_communication_tables(database, true, data.communication);
}

bool has_cluster_summary(const std::string& folder) {
  const fs::path at = summary_folder(folder);
  return has_texts(at) || is_file(at / kDatabaseFile);
}

ClusterData read_cluster_summary(const std::string& folder) {
  const fs::path at = summary_folder(folder);
  ClusterData data;
  if (!has_texts(at) && is_file(at / kDatabaseFile)) {
    data.notes.push_back("the figures are those of " + (at / kDatabaseFile).string());
    Database database((at / kDatabaseFile).string());
    read_cluster_database(database, data);
    if (data.stages.empty()) find_stages(data);
    return data;
  }
  std::size_t read = 0;
  std::vector<std::string> failures;
  const auto attempt = [&](const char* name, auto use) {
    if (!is_file(at / name)) {
      data.notes.push_back((at / name).string() + " is absent");
      return;
    }
    try {
      use(at / name);
      ++read;
    } catch (const Error& error) {
      failures.emplace_back(error.what());
    }
  };
  attempt(kStepsFile, [&](const fs::path& path) { read_steps(csv_table(path.string()), data); });
  const auto attempt_json = [&](const char* name, trace::ascend::ReadCommunication* read) {
    attempt(name, [&](const fs::path& path) {
      constexpr std::uint64_t kLongest = std::uint64_t{256} << 20;
      read(profile::read_regular_file(path.string(), kLongest), path.string(), data.communication);
    });
  };
  attempt_json(kCommunicationFile, &trace::ascend::read_cluster_communication_json);
  attempt_json(kMatrixFile, &trace::ascend::read_cluster_matrix_json);
  if (read == 0)
    throw FormatError(folder, 0,
                      failures.empty() ? std::string("a summary of a cluster (") + kStepsFile + ")"
                                       : "a summary of a cluster: " + failures.front());
  data.notes.insert(data.notes.end(), failures.begin(), failures.end());
  if (data.stages.empty()) find_stages(data);
  return data;
}

}  // namespace headrace::analysis::device
