// Where the figures of a job's ranks come from: their own files, or the vendor's summary.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>
#include <system_error>

#include "analysis/device/cluster_database.h"
#include "headrace/analysis/device/cluster.h"
#include "headrace/analysis/device/figures.h"
#include "headrace/analysis/device/profile_table.h"
#include "headrace/analysis/device/step_time.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"
#include "headrace/trace/columns.h"

namespace headrace::analysis::device {
namespace {

namespace fs = std::filesystem;
using trace::ascend::Communication;

/// A group of ranks, and whether they pass data along a pipeline.
struct RankGroup {
  std::set<std::int64_t> ranks;
  bool point_to_point = false;
};

/// Who belongs together, by union and find.
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
std::vector<RankGroup> groups_of(const std::vector<ClusterOperation>& operations) {
  std::map<std::pair<std::string, bool>, RankGroup> found;
  for (const ClusterOperation& operation : operations) {
    if (operation.time.of.operation.starts_with("Total Op Info")) continue;
    RankGroup& group = found[{operation.time.of.group, operation.time.of.point_to_point}];
    group.ranks.insert(operation.rank);
    group.point_to_point = operation.time.of.point_to_point;
  }
  std::vector<RankGroup> groups;
  for (auto& [name, group] : found) groups.push_back(std::move(group));
  return groups;
}

void add_communication(std::int64_t rank, const Communication& communication, ClusterData& data) {
  for (const auto& time : communication.times) data.operations.push_back({rank, time});
  for (const auto& bandwidth : communication.bandwidths) data.bandwidths.push_back({rank, bandwidth});
  for (const auto& link : communication.links) data.links.push_back({rank, link});
  for (const FormatError& failure : communication.failures) data.notes.emplace_back(failure.what());
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

/// Rows of a table with the columns of step_trace_time. `rank_of` takes a row; negative: the row is no rank's.
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
  if (!ranks.empty()) data.stages = stages_of(ranks, groups_of(data.operations));
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

void read_steps(const fs::path& path, ClusterData& data) {
  const Table table = csv_table(path.string());
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

nlohmann::json parsed(const fs::path& path) {
  constexpr std::uint64_t kLongest = std::uint64_t{256} << 20;
  const std::string text = profile::read_regular_file(path.string(), kLongest);
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) throw FormatError(path.string(), 0, "a JSON object of groups of ranks");
  return document;
}

/// Of {group: {step: {operation: ...}}}, in newer versions inside p2p and collective: calls `use` with each
/// group, step, type and the operations.
template <class Use>
void each_step(const nlohmann::json& document, const std::string& type, const Use& use) {
  for (const auto& [group, steps] : document.items()) {
    if (!steps.is_object()) continue;
    if (type.empty() && (group == "p2p" || group == "collective")) {
      each_step(steps, group, use);
      continue;
    }
    for (const auto& [step, operations] : steps.items()) {
      if (operations.is_object()) use(group, step, type.empty() ? "collective" : type, operations);
    }
  }
}

/// What a rank's own file would say.
std::string own_file(const std::string& step, const std::string& type, const nlohmann::json& operations) {
  const nlohmann::json own = {{step, {{type, operations}}}};
  return own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// {operation: {rank: figures}}
void read_groups(const nlohmann::json& document, const std::string& name, ClusterData& data) {
  each_step(document, "",
            [&](const std::string& group, const std::string& step, const std::string& type,
                const nlohmann::json& operations) {
              std::map<std::int64_t, nlohmann::json> by_rank;
              for (const auto& [operation, ranks] : operations.items()) {
                if (!ranks.is_object()) continue;
                for (const auto& [rank, figures] : ranks.items()) {
                  const std::vector<std::int64_t> number = ranks_in(rank);
                  if (number.size() == 1) by_rank[number[0]][operation] = figures;
                }
              }
              for (const auto& [rank, figures] : by_rank) {
                Communication communication;
                trace::ascend::read_communication_json(own_file(step, type, figures), name, communication);
                for (auto& time : communication.times) {
                  if (time.of.group.empty()) time.of.group = group;
                }
                add_communication(rank, communication, data);
              }
            });
}

/// {operation: {source-target: figures}}: links between global ranks.
void read_matrix(const nlohmann::json& document, const std::string& name, ClusterData& data) {
  each_step(document, "",
            [&](const std::string&, const std::string& step, const std::string& type,
                const nlohmann::json& operations) {
              Communication communication;
              trace::ascend::read_communication_matrix_json(own_file(step, type, operations), name,
                                                            communication);
              for (auto& link : communication.links) data.links.push_back({trace::kAbsent, std::move(link)});
            });
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
  for (const trace::ascend::ProfileFolder& profile : profiles)
    add_communication(profile.rank.value_or(trace::kAbsent), trace::ascend::read_communication(profile),
                      data);
  find_stages(data);
  return data;
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
    read_cluster_database((at / kDatabaseFile).string(), data);
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
  attempt(kStepsFile, [&](const fs::path& path) { read_steps(path, data); });
  attempt(kCommunicationFile, [&](const fs::path& path) { read_groups(parsed(path), path.string(), data); });
  attempt(kMatrixFile, [&](const fs::path& path) { read_matrix(parsed(path), path.string(), data); });
  if (read == 0)
    throw FormatError(folder, 0,
                      failures.empty() ? std::string("a summary of a cluster (") + kStepsFile + ")"
                                       : "a summary of a cluster: " + failures.front());
  data.notes.insert(data.notes.end(), failures.begin(), failures.end());
  if (data.stages.empty()) find_stages(data);
  return data;
}

}  // namespace headrace::analysis::device
