// Purposes of a rank's process groups: the pipeline, data-parallel ranks, embeddings.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/trace/process_groups.h"

namespace headrace::analysis::device {

struct JobGroups {
  enum class Use : std::uint8_t { other, data, stages, embedding };
  std::map<std::string, Use, std::less<>> by_name;
  std::vector<std::int64_t> pipeline;  ///< its ranks, one a stage; empty if unknown
  std::int32_t stage = 0;
  std::int32_t dp_rank = 0;
};

using Stages = std::vector<std::vector<std::int64_t>>;

inline bool is_of_embedding(const std::string& description) {
  std::string plain = description;
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return plain.find("embedding") != std::string::npos || plain.find("embd") != std::string::npos;
}

/// Empty if the description names none.
inline std::string role_of(const trace::ProcessGroup& group, std::int64_t rank) {
  const auto places = trace::places_of({group}, rank);
  return places.empty() ? "" : places.front().role;
}

/// Stage, and place among the ranks of the stage.
inline std::optional<std::pair<std::size_t, std::size_t>> place_in(const Stages& stages, std::int64_t rank) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const auto at = std::find(stages[stage].begin(), stages[stage].end(), rank);
    if (at != stages[stage].end())
      return std::pair(stage, static_cast<std::size_t>(at - stages[stage].begin()));
  }
  return std::nullopt;
}

/// One rank of each stage, in order.
inline bool is_pipeline(const std::vector<std::int64_t>& ranks, const Stages& stages) {
  if (ranks.size() != stages.size()) return false;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const auto place = place_in(stages, ranks[stage]);
    if (!place || place->first != stage) return false;
  }
  return true;
}

inline JobGroups::Use use_in(const Stages& stages, std::size_t stage, const trace::ProcessGroup& group,
                             std::int64_t rank) {
  if (is_of_embedding(group.description)) return JobGroups::Use::embedding;
  const std::string role = role_of(group, rank);
  if (role == "tensor" || role == "sequence" || role == "expert") return JobGroups::Use::other;
  const bool within = std::all_of(group.ranks.begin(), group.ranks.end(), [&](std::int64_t each) {
    return std::find(stages[stage].begin(), stages[stage].end(), each) != stages[stage].end();
  });
  if (within) return group.ranks.empty() ? JobGroups::Use::other : JobGroups::Use::data;
  const bool of_ends = group.ranks.size() == 2 && stages.size() > 2 &&
                       is_pipeline(group.ranks, {stages.front(), stages.back()});
  return of_ends ? JobGroups::Use::embedding : JobGroups::Use::stages;
}

/// As the groups are described.
inline JobGroups job_groups(const std::vector<trace::ProcessGroup>& groups, std::int64_t rank) {
  JobGroups result;
  bool has_data = false;
  for (const trace::ParallelPlace& place : trace::places_of(groups, rank)) {
    if (place.role == "pipeline") result.stage = static_cast<std::int32_t>(place.index);
    if (place.role == "data") {
      result.dp_rank = static_cast<std::int32_t>(place.index);
      has_data = true;
    }
  }
  for (const trace::ProcessGroup& group : groups) {
    if (result.pipeline.empty() && role_of(group, rank) == "pipeline") result.pipeline = group.ranks;
  }
  const bool is_plain = result.pipeline.empty() && !has_data;
  if (is_plain) result.dp_rank = static_cast<std::int32_t>(rank);
  for (const trace::ProcessGroup& group : groups) {
    const std::string role = role_of(group, rank);
    JobGroups::Use use = JobGroups::Use::other;
    if (role == "data" || (role.empty() && is_plain)) use = JobGroups::Use::data;
    if (role == "pipeline" || (role.empty() && !result.pipeline.empty())) use = JobGroups::Use::stages;
    if (role.empty() && is_of_embedding(group.description)) use = JobGroups::Use::embedding;
    result.by_name[group.name] = use;
  }
  return result;
}

/// As their ranks lie in `stages`, the ranks of each stage: a group within one stage is data-parallel unless it is
/// described otherwise. The pipeline is the group with one rank of each stage; without one, and if the stages have
/// equally many ranks, it is the n-th rank of each stage. As the other function says if `rank` is in no stage.
inline JobGroups job_groups(const std::vector<trace::ProcessGroup>& groups, std::int64_t rank,
                            const std::vector<std::vector<std::int64_t>>& stages) {
  const auto place = place_in(stages, rank);
  if (!place) return job_groups(groups, rank);
  JobGroups result;
  result.stage = static_cast<std::int32_t>(place->first);
  for (const trace::ProcessGroup& group : groups) {
    const bool has_rank = std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
    if (result.pipeline.empty() && has_rank && is_pipeline(group.ranks, stages))
      result.pipeline = group.ranks;
    result.by_name[group.name] = use_in(stages, place->first, group, rank);
  }
  const bool even = std::all_of(stages.begin(), stages.end(),
                                [&](const auto& each) { return each.size() == stages.front().size(); });
  if (result.pipeline.empty() && even) {
    for (const auto& stage : stages) result.pipeline.push_back(stage[place->second]);
  }
  const auto first = result.pipeline.empty() ? place : place_in(stages, result.pipeline.front());
  result.dp_rank = static_cast<std::int32_t>(first->second);
  return result;
}

}  // namespace headrace::analysis::device
