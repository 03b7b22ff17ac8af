#include "headrace/trace/process_groups.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"

namespace headrace::trace {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxGroups = 4096;
constexpr std::size_t kMaxRanks = 1'000'000;
constexpr std::uintmax_t kLongestMetadata = std::uintmax_t{4} << 20;

std::string text_at(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int64_t integer_at(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : -1;
}

/// Takes from `left`. Empty if a member is not a rank.
std::vector<std::int64_t> ranks_at(const json& object, const char* key, std::size_t& left) {
  const auto at = object.find(key);
  std::vector<std::int64_t> ranks;
  if (at == object.end() || !at->is_array() || at->size() > left) return ranks;
  for (const json& each : *at) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 0) return {};
    ranks.push_back(each.get<std::int64_t>());
  }
  left -= ranks.size();
  return ranks;
}

struct RoleWord {
  std::string_view word;
  std::string_view role;
};
/// Words of descriptions, as frameworks write them.
constexpr std::array<RoleWord, 17> kRoles = {{{"pp", "pipeline"},
                                              {"pipeline", "pipeline"},
                                              {"pipe", "pipeline"},
                                              {"tp", "tensor"},
                                              {"tensor", "tensor"},
                                              {"dp", "data"},
                                              {"data", "data"},
                                              {"ddp", "data"},
                                              {"fsdp", "data"},
                                              {"shard", "data"},
                                              {"replicate", "data"},
                                              {"cp", "sequence"},
                                              {"context", "sequence"},
                                              {"sp", "sequence"},
                                              {"sequence", "sequence"},
                                              {"ep", "expert"},
                                              {"expert", "expert"}}};
/// A group of these is one of parts of a pipeline.
constexpr std::array<std::string_view, 2> kNoRole = {"embedding", "embd"};

/// Empty for no role and for several.
std::string_view role_of(std::string_view description) {
  std::string_view role;
  std::string word;
  for (std::size_t i = 0; i <= description.size(); ++i) {
    const auto letter = static_cast<unsigned char>(i < description.size() ? description[i] : ' ');
    if (std::isalnum(letter) != 0) {
      word.push_back(static_cast<char>(std::tolower(letter)));
      continue;
    }
    if (std::find(kNoRole.begin(), kNoRole.end(), word) != kNoRole.end()) return {};
    const auto found =
        std::find_if(kRoles.begin(), kRoles.end(), [&](const RoleWord& each) { return each.word == word; });
    word.clear();
    if (found == kRoles.end() || found->role == role) continue;
    if (!role.empty()) return {};
    role = found->role;
  }
  return role;
}

std::vector<std::int64_t> first_ranks(std::int64_t count, std::size_t& left) {
  std::vector<std::int64_t> ranks;
  if (count <= 0 || static_cast<std::size_t>(count) > left) return ranks;
  for (std::int64_t rank = 0; rank < count; ++rank) ranks.push_back(rank);
  left -= ranks.size();
  return ranks;
}

}  // namespace

std::vector<ProcessGroup> process_groups(const TraceFile& file) {
  std::vector<ProcessGroup> groups;
  for (const auto& [key, value] : file.metadata) {
    if (key != "distributedInfo") continue;
    const json info = json::parse(value, nullptr, false);
    if (!info.is_object()) continue;
    const auto listed = info.find("pg_config");
    if (listed == info.end() || !listed->is_array()) continue;
    const std::int64_t world = integer_at(info, "world_size");
    std::size_t left = kMaxRanks;
    for (const json& each : *listed) {
      if (!each.is_object() || groups.size() == kMaxGroups) continue;
      ProcessGroup group{text_at(each, "pg_name"), text_at(each, "pg_desc"), ranks_at(each, "ranks", left)};
      std::int64_t size = integer_at(each, "pg_size");
      if (size < 0) size = integer_at(each, "group_size");
      if (group.ranks.empty() && size > 0 && size == world) group.ranks = first_ranks(world, left);
      if (!group.name.empty()) groups.push_back(std::move(group));
    }
  }
  return groups;
}

std::vector<ProcessGroup> process_groups(const ascend::ProfileFolder& profile) {
  std::vector<ProcessGroup> groups;
  if (profile.metadata.empty()) return groups;
  std::string text;
  try {
    text = profile::read_regular_file(profile.metadata, kLongestMetadata);
  } catch (const FormatError&) {
    return groups;
  }
  const json metadata = json::parse(text, nullptr, false);
  if (!metadata.is_object()) return groups;
  const auto listed = metadata.find("parallel_group_info");
  if (listed == metadata.end() || !listed->is_object()) return groups;
  std::size_t left = kMaxRanks;
  for (const auto& [name, each] : listed->items()) {
    if (!each.is_object() || groups.size() == kMaxGroups) continue;
    groups.push_back({name, text_at(each, "group_name"), ranks_at(each, "global_ranks", left)});
  }
  return groups;
}

std::vector<ParallelPlace> places_of(const std::vector<ProcessGroup>& groups, std::int64_t rank) {
  std::vector<ParallelPlace> places;
  for (const ProcessGroup& group : groups) {
    const auto at = std::find(group.ranks.begin(), group.ranks.end(), rank);
    const std::string_view role = role_of(group.description);
    if (role.empty() || group.ranks.size() < 2 || at == group.ranks.end()) continue;
    if (std::any_of(places.begin(), places.end(), [&](const auto& each) { return each.role == role; }))
      continue;
    places.push_back(
        {std::string(role), at - group.ranks.begin(), static_cast<std::int64_t>(group.ranks.size())});
  }
  return places;
}

std::vector<std::int64_t> ranks_in(std::string_view list) {
  std::vector<std::int64_t> ranks;
  if (list.size() < 2 || list.front() != '[' || list.back() != ']') return ranks;
  list = list.substr(1, list.size() - 2);
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    std::int64_t rank = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
    if (error != std::errc() || end != word.data() + word.size() || rank < 0) return {};
    ranks.push_back(rank);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return ranks;
}

}  // namespace headrace::trace
