#include "headrace/trace/ascend/profile_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <tuple>

#include "headrace/profile/errors.h"
#include "headrace/profile/regular_file.h"

namespace headrace::trace::ascend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutput = "ASCEND_PROFILER_OUTPUT";
constexpr std::size_t kMaxEntries = 100'000;
constexpr int kDeepest = 3;
/// A file about a run has a few kilobytes.
constexpr std::uintmax_t kLongestInfo = std::uintmax_t{4} << 20;

/// Entries of a folder by name; empty if it cannot be read. Takes from `left`.
std::vector<fs::path> entries_of(const fs::path& folder, std::size_t& left) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && left > 0; at.increment(error)) {
    entries.push_back(at->path());
    --left;
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// The digits between `begin` and `end` of a name, nothing if anything else is there.
std::optional<std::int64_t> number_between(std::string_view name, std::string_view begin,
                                           std::string_view end) {
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return std::nullopt;
  name = name.substr(begin.size(), name.size() - begin.size() - end.size());
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || stop != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

constexpr std::array<std::string_view, 2> kDatabases = {"ascend_pytorch_profiler",
                                                        "ascend_mindspore_profiler"};

bool is_database(std::string_view name) {
  if (!name.ends_with(".db")) return false;
  if (name.starts_with("msprof_") || name.starts_with("msmonitor_")) return true;
  return std::any_of(kDatabases.begin(), kDatabases.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

/// `rank_id` of profiler_info.json: a number or a text; negative if the run had one process.
std::optional<std::int64_t> rank_in(const std::string& info) {
  if (info.empty()) return std::nullopt;
  std::string text;
  try {
    text = profile::read_regular_file(info, kLongestInfo);
  } catch (const FormatError&) {
    return std::nullopt;
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("rank_id")) return std::nullopt;
  const nlohmann::json& rank = json["rank_id"];
  if (rank.is_number_integer() && rank.get<std::int64_t>() >= 0) return rank.get<std::int64_t>();
  if (rank.is_string()) return number_between(rank.get_ref<const std::string&>(), "", "");
  return std::nullopt;
}

/// Reads the names in a folder; where none is of a profile, nothing.
std::optional<ProfileFolder> profile_at(const fs::path& folder, std::size_t& left) {
  const fs::path output = is_folder(folder / kOutput) ? folder / kOutput : folder;
  ProfileFolder profile;
  profile.path = (folder.filename() == kOutput ? folder.parent_path() : folder).string();
  profile.output = output.string();
  bool found = output != folder || folder.filename() == kOutput;
  // The files that describe the run lie beside the output.
  for (const fs::path& entry :
       entries_of(profile.path.empty() ? fs::path(".") : fs::path(profile.path), left)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("profiler_") || !name.ends_with(".json") || !is_file(entry)) continue;
    if (name == "profiler_metadata.json") {
      profile.metadata = entry.string();
    } else if (const auto rank = number_between(name, "profiler_info_", ".json")) {
      profile.info = entry.string();
      profile.rank = rank;
    } else if (name == "profiler_info.json" && profile.info.empty()) {
      profile.info = entry.string();
    } else {
      continue;
    }
    found = true;
  }
  for (const fs::path& entry : entries_of(output, left)) {
    const std::string name = entry.filename().string();
    if (!is_file(entry)) continue;
    if (name == "trace_view.json" || name == "trace_view.json.gz") profile.trace_view = entry.string();
    if (name == "analysis.db" || name == "communication_analyzer.db")
      profile.analysis_database = entry.string();
    if (is_database(name) && profile.database.empty()) profile.database = entry.string();
  }
  if (!found && profile.trace_view.empty() && profile.database.empty()) return std::nullopt;
  if (!profile.rank) profile.rank = rank_in(profile.info);
  if (!profile.rank && !profile.database.empty()) profile.rank = rank_of_database(profile.database);
  return profile;
}

void search(const fs::path& folder, int depth, std::size_t& left, std::vector<ProfileFolder>& found) {
  if (auto profile = profile_at(folder, left)) {
    found.push_back(std::move(*profile));
    return;
  }
  if (depth == kDeepest) return;
  for (const fs::path& entry : entries_of(folder, left)) {
    std::error_code error;
    if (is_folder(entry) && !fs::is_symlink(entry, error)) search(entry, depth + 1, left, found);
  }
}

/// "profiles/" and "profiles" are the same folder.
fs::path without_slash(const std::string& path) {
  const fs::path plain = fs::path(path).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

}  // namespace

std::vector<ProfileFolder> find_profiles(const std::string& path) {
  std::vector<ProfileFolder> found;
  std::size_t left = kMaxEntries;
  if (is_folder(path)) search(without_slash(path), 0, left, found);
  std::stable_sort(found.begin(), found.end(), [](const ProfileFolder& a, const ProfileFolder& b) {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    return std::tuple(a.rank.value_or(kLast), a.path) < std::tuple(b.rank.value_or(kLast), b.path);
  });
  return found;
}

std::optional<ProfileFolder> profile_of(const std::string& file) {
  const fs::path folder = fs::path(file).lexically_normal().parent_path();
  std::size_t left = kMaxEntries;
  const fs::path at = folder.filename() == kOutput ? folder.parent_path() : folder;
  return profile_at(at.empty() ? fs::path(".") : at, left);
}

std::optional<std::int64_t> rank_of_database(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  for (const std::string_view begin : kDatabases) {
    if (const auto rank = number_between(name, std::string(begin) + "_", ".db")) return rank;
  }
  return std::nullopt;
}

}  // namespace headrace::trace::ascend
