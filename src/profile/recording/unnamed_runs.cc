#include "headrace/profile/unnamed_runs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/profile/live_pointer.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/session.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIgnoreFile = ".gitignore";

bool is_own_folder(const fs::path& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

/// Findings in watched data, uses of the time, and the parameters of the script
/// (python/headrace/results).
bool is_of_python(const std::string& name) {
  constexpr std::array<std::string_view, 4> kOfAProcess = {".watch-", ".budget-", ".tokens-", ".autopilot-"};
  const bool of_a_process = std::any_of(kOfAProcess.begin(), kOfAProcess.end(), [&](std::string_view part) {
    return name.find(part) != std::string::npos;
  });
  return name.ends_with(".params.json") || (of_a_process && name.ends_with(".json")) ||
         name.ends_with(".new");
}

/// Files of `hr.wrap`, `headrace run` and `headrace timeline` in a run folder.
bool is_ours(const std::string& name) {
  constexpr std::array<std::string_view, 3> kSuffixes = {kSegmentSuffix, ".live", kLiveSegmentSuffix};
  if (name == "timeline.json.gz" || name == "headrace-page.html" || is_half_copy(name)) return true;
  return name.starts_with("rank") &&
         (is_of_python(name) || std::any_of(kSuffixes.begin(), kSuffixes.end(),
                                            [&](std::string_view suffix) { return name.ends_with(suffix); }));
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

bool may_go(const fs::path& run) {
  const auto entries = entries_of(run);
  if (!std::all_of(entries.begin(), entries.end(),
                   [](const fs::path& entry) { return is_ours(entry.filename().string()); }))
    return false;
  const auto segments = find_segments(run.string());
  return std::none_of(segments.begin(), segments.end(), [](const RunSegment& one) { return one.running; });
}

void write_ignore_file(const fs::path& runs) {
  const int fd =
      open((runs / kIgnoreFile).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return;
  constexpr std::string_view kAll = "*\n";
  const bool whole = write(fd, kAll.data(), kAll.size()) == static_cast<ssize_t>(kAll.size());
  if (close(fd) != 0 || !whole) unlink((runs / kIgnoreFile).c_str());
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A name that is safe as one path component.
std::string as_file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; }, '-');
  // "..", from wherever it came, would be another folder, and ".x" a hidden one.
  if (!name.empty() && name.front() == '.') name.insert(0, "run-");
  if (name.size() > 100) name.resize(100);
  return name;
}

std::string shared_name() {
  std::string elastic = environment("TORCHELASTIC_RUN_ID");
  // "none" is a launcher's own default id; the rendezvous address then tells jobs apart.
  if (!elastic.empty() && elastic != "none") return elastic;
  const std::string slurm = environment("SLURM_JOB_ID");
  if (!slurm.empty()) return "slurm-" + slurm;
  // The ranks' meeting point, by their launchers.
  for (const auto& [host, port] :
       {std::pair("MASTER_ADDR", "MASTER_PORT"), std::pair("MS_SCHED_HOST", "MS_SCHED_PORT")}) {
    const std::string address = environment(host);
    const std::string number = environment(port);
    if (!address.empty() && !number.empty()) return address + "-" + number;
  }
  return "";
}

}  // namespace

bool is_unnamed_run(const std::string& folder_name) {
  constexpr std::string_view kShape = "dddddddd-dddddd-";
  if (folder_name.size() <= kShape.size()) return false;
  for (std::size_t i = 0; i < folder_name.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(folder_name[i])) != 0;
    const bool wants_digit = i >= kShape.size() || kShape[i] == 'd';
    if (wants_digit ? !digit : folder_name[i] != '-') return false;
  }
  return true;
}

namespace {

/// Called before the folder `run` is made. If that is in a folder "headrace-runs": puts a .gitignore there, and removes
/// the oldest unnamed runs beyond the newest 20. A run that still records, or whose folder holds anything that
/// Headrace did not write, stays.
void tidy_unnamed_runs(const std::string& run) noexcept try {
  const fs::path runs = fs::path(run).parent_path();
  if (runs.filename() != kDefaultRuns || !is_own_folder(runs)) return;
  write_ignore_file(runs);
  if (!is_unnamed_run(fs::path(run).filename().string())) return;
  std::vector<fs::path> unnamed;
  for (const fs::path& entry : entries_of(runs)) {
    if (is_unnamed_run(entry.filename().string()) && is_own_folder(entry)) unnamed.push_back(entry);
  }
  std::sort(unnamed.begin(), unnamed.end());
  // The one that is about to be made is the newest.
  for (std::size_t i = 0; i + kUnnamedRunsKept <= unnamed.size(); ++i) {
    if (may_go(unnamed[i])) remove_run_folder(unnamed[i].string());
  }
} catch (...) {
  // The next run tidies up.
}

}  // namespace

void remove_run_folder(const std::string& run) noexcept try {
  std::error_code error;
  for (const fs::path& entry : entries_of(run)) {
    if (is_ours(entry.filename().string())) fs::remove(entry, error);
  }
  const fs::path runs = fs::path(run).parent_path();
  if (!fs::remove(run, error) || runs.filename() != kDefaultRuns) return;
  const auto left = entries_of(runs);
  if (left.size() != 1 || left.front().filename() != kIgnoreFile) return;
  fs::remove(left.front(), error);
  fs::remove(runs, error);
} catch (...) {
  // Leftover files explain themselves.
}

namespace {

/// Another user may have put links into a folder of his, under the names of our files.
std::string why_not_ours(const std::string& run) {
  struct stat info{};
  if (access(run.c_str(), W_OK | X_OK) != 0 || stat(run.c_str(), &info) != 0)
    return run + ": " + std::strerror(errno);
  return info.st_uid == geteuid() ? "" : run + ": the folder belongs to another user; name one of your own";
}

}  // namespace

std::string make_run_folder(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  if (fs::is_directory(path, error)) return why_not_ours(run);
  std::error_code parent;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), parent);
  if (parent) return run + ": " + parent.message();  // mkdir would only say that there is none
  tidy_unnamed_runs(run);
  if (mkdir(run.c_str(), 0700) == 0) return "";
  const int made = errno;
  return made == EEXIST && fs::is_directory(path, error) ? why_not_ours(run)
                                                         : run + ": " + std::strerror(made);
}

std::string free_copy_path(const std::string& run, int rank) {
  for (int number = 1;; ++number) {
    std::string path = run + "/rank" + std::to_string(rank);
    if (number > 1) path += "." + std::to_string(number);
    path += kSegmentSuffix;
    // The pointer reserves the name, so two processes that start at once get two names.
    if (access(path.c_str(), F_OK) == 0) continue;
    const int fd = open(live_pointer_path(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (fd >= 0 || errno != EEXIST || number > 10000) return path;
  }
}

std::string default_run_folder() {
  std::string given = environment("HEADRACE_DIR");
  if (!given.empty()) return given;
  std::string name = shared_name();
  if (name.empty()) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
    name = std::string(text.data()) + "-" + std::to_string(getpid());
  }
  return std::string(kDefaultRuns) + "/" + as_file_name(name);
}

bool default_run_is_unnamed() { return environment("HEADRACE_DIR").empty() && shared_name().empty(); }

}  // namespace headrace::profile
