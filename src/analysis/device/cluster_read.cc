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
#include "analysis/device/rank_set.h"
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

/// Rows of a table with the columns of step_trace_time.
void add_steps(const Table& table, ClusterData& data) {
  const auto number = [&](std::string_view name, std::size_t row) {
    for (const Column& column : table.columns()) {
      // The file's own name of one of them is longer.
      const bool same =
          column.name == name || (name == "not_overlapped_exclude_receive_s" &&
                                  column.name == "communication_not_overlapped_and_exclude_receive_s");
      if (!same) continue;
      if (const auto* numbers = std::get_if<Numbers>(&column.values)) return (*numbers)[row];
    }
    return kNoFigure;
  };
  const Integers* ranks = nullptr;
  for (const Column& column : table.columns()) {
    if (column.name == "rank") ranks = std::get_if<Integers>(&column.values);
  }
  for (std::size_t row = 0; ranks != nullptr && row < table.rows(); ++row) {
    ClusterStep step;
    step.rank = (*ranks)[row];
    for (const Column& column : table.columns()) {
      if (column.name != "step") continue;
      if (const auto* texts = std::get_if<Texts>(&column.values)) step.step = (*texts)[row];
      if (const auto* integers = std::get_if<Integers>(&column.values))
        step.step = std::to_string((*integers)[row]);
    }
    for (const char* name : ClusterData::kColumns) step.parts.push_back(number(name, row));
    data.steps.push_back(std::move(step));
  }
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
  const auto text_of = [&](std::size_t row) {
    if (const auto* texts = std::get_if<Texts>(&index.values)) return std::string((*texts)[row]);
    if (const auto* integers = std::get_if<Integers>(&index.values)) return std::to_string((*integers)[row]);
    return std::string();
  };
  Table steps;
  for (const Column& column : table.columns()) steps.add(column.name, column.values);
  Integers ranks;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::vector<std::int64_t> members = ranks_in(text_of(row));
    ranks.push_back(types[row] == "rank" && members.size() == 1 ? members[0] : trace::kAbsent);
    if (types[row] == "stage" && !members.empty() &&
        std::find(data.stages.begin(), data.stages.end(), members) == data.stages.end())
      data.stages.push_back(members);
  }
  steps.add("rank", std::move(ranks));
  add_steps(steps, data);
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

/// {group: {step: {operation: {rank: figures}}}}, in newer versions inside p2p and collective.
void read_groups(const nlohmann::json& document, const std::string& name, const std::string& type,
                 ClusterData& data) {
  for (const auto& [group, steps] : document.items()) {
    if ((group == "p2p" || group == "collective") && type.empty() && steps.is_object()) {
      read_groups(steps, name, group, data);
      continue;
    }
    if (!steps.is_object()) continue;
    for (const auto& [step, operations] : steps.items()) {
      if (!operations.is_object()) continue;
      std::map<std::int64_t, nlohmann::json> by_rank;
      for (const auto& [operation, ranks] : operations.items()) {
        if (!ranks.is_object()) continue;
        for (const auto& [rank, figures] : ranks.items()) {
          const std::vector<std::int64_t> number = ranks_in(rank);
          if (number.size() == 1) by_rank[number[0]][operation] = figures;
        }
      }
      for (const auto& [rank, figures] : by_rank) {
        // What one rank's own file would say.
        const nlohmann::json own = {{step, {{type.empty() ? "collective" : type, figures}}}};
        Communication communication;
        trace::ascend::read_communication_json(
            own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), name, communication);
        for (auto& time : communication.times) {
          if (time.of.group.empty()) time.of.group = group;
        }
        add_communication(rank, communication, data);
      }
    }
  }
}

/// The same with {source-target: figures}: links between global ranks.
void read_matrix(const nlohmann::json& document, const std::string& name, const std::string& type,
                 ClusterData& data) {
  for (const auto& [group, steps] : document.items()) {
    if ((group == "p2p" || group == "collective") && type.empty() && steps.is_object()) {
      read_matrix(steps, name, group, data);
      continue;
    }
    if (!steps.is_object()) continue;
    for (const auto& [step, operations] : steps.items()) {
      if (!operations.is_object()) continue;
      const nlohmann::json own = {{step, {{type.empty() ? "collective" : type, operations}}}};
      Communication communication;
      trace::ascend::read_communication_matrix_json(
          own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), name, communication);
      for (auto& link : communication.links) data.links.push_back({trace::kAbsent, std::move(link)});
    }
  }
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
  attempt(kCommunicationFile,
          [&](const fs::path& path) { read_groups(parsed(path), path.string(), "", data); });
  attempt(kMatrixFile, [&](const fs::path& path) { read_matrix(parsed(path), path.string(), "", data); });
  if (read == 0)
    throw FormatError(folder, 0,
                      failures.empty() ? std::string("a summary of a cluster (") + kStepsFile + ")"
                                       : "a summary of a cluster: " + failures.front());
  data.notes.insert(data.notes.end(), failures.begin(), failures.end());
  if (data.stages.empty()) find_stages(data);
  return data;
}

}  // namespace headrace::analysis::device
