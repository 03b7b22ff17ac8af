#include "headrace/profile/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "headrace/profile/errors.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/private_folder.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment_image.h"
#include "headrace/profile/unnamed_runs.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPointerSuffix = ".live";

/// rank<r>[.n].hrseg -> r; -1 for any other name.
int rank_of(const std::string& name) {
  if (name.rfind("rank", 0) != 0) return -1;
  char* end = nullptr;
  errno = 0;
  const long rank = std::strtol(name.c_str() + 4, &end, 10);
  if (end == name.c_str() + 4 || (*end != '.' && *end != '\0') || errno != 0 || rank < 0) return -1;
  return static_cast<int>(std::min<long>(rank, 1 << 30));
}

/// Fills in what the live segment says, where it is one and has this identity (0: any).
bool take_live(RunSegment& segment, const std::string& live_path, std::uint64_t identity) {
  try {
    SegmentImage image;
    image.read_file(live_path);
    const SegmentHeader& header = image.header();
    if (identity != 0 && header.identity != identity) return false;
    // On a shared file system the owner may run on another machine.
    const bool here = header.boot == boot_identity();
    segment.running =
        header.closed.load() == 0 && here && process_alive(header.owner_pid, header.owner_start);
    segment.live = true;
    segment.path = live_path;
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Where the run folder is full, its pointer could not be written; the segment still knows its home.
void add_without_pointer(const std::string& run, std::vector<RunSegment>& segments) {
  const PrivateFolder folder(shared_memory_folder(), false);
  std::vector<std::string> homes;
  folder.each([&](const std::string& name) {
    if (name.ends_with(kHomeSuffix)) homes.push_back(name);
  });
  for (const std::string& name : homes) {
    const std::string copy_path = folder.read_line(name);
    std::error_code error;
    const fs::path home(copy_path);
    if (!is_copy_path(copy_path) || !fs::equivalent(home.parent_path(), run, error)) continue;
    const std::string live = folder.path() + "/" + name.substr(0, name.size() - kHomeSuffix.size());
    const auto known = std::find_if(segments.begin(), segments.end(), [&](const RunSegment& segment) {
      return fs::path(segment.copy_path).filename() == home.filename();
    });
    if (known != segments.end() && known->live) continue;
    RunSegment segment{.path = "",
                       .copy_path = (fs::path(run) / home.filename()).string(),
                       .rank = rank_of(home.filename().string())};
    if (!take_live(segment, live, 0)) continue;
    if (known != segments.end()) {
      *known = segment;
    } else {
      segments.push_back(segment);
    }
  }
}

}  // namespace

std::string make_run_folder(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  if (fs::is_directory(path, error)) {
    return access(run.c_str(), W_OK | X_OK) == 0 ? "" : run + ": " + std::strerror(errno);
  }
  std::error_code parent;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), parent);
  if (parent) return run + ": " + parent.message();  // mkdir would only say that there is none
  tidy_unnamed_runs(run);
  if (mkdir(run.c_str(), 0700) == 0) return "";
  const int made = errno;
  return made == EEXIST && fs::is_directory(path, error) ? "" : run + ": " + std::strerror(made);
}

std::string shared_memory_folder() { return "/dev/shm/headrace-" + std::to_string(geteuid()); }

std::string shared_memory_path() {
  static std::atomic<unsigned> next{0};
  const PrivateFolder folder(shared_memory_folder(), true);
  if (!folder.ok()) return "";
  return folder.path() + "/" + std::to_string(current_pid()) + "-" +
         std::to_string(process_start(current_pid())) + "-" + std::to_string(next.fetch_add(1)) +
         std::string(kSegmentSuffix);
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

bool is_copy_path(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.ends_with(kSegmentSuffix) && rank_of(name) >= 0;
}

bool is_half_copy(const std::string& name) {
  constexpr std::size_t kSuffix = 7;  // ".XXXXXX"
  return name.size() > kSuffix && is_copy_path(name.substr(0, name.size() - kSuffix));
}

std::vector<std::string> copy_paths(const std::string& run) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(run, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    for (const std::string_view suffix : {kSegmentSuffix, kPointerSuffix}) {
      if (rank_of(name) < 0 || !name.ends_with(suffix)) continue;
      const std::string stem = name.substr(0, name.size() - suffix.size());
      paths.push_back((fs::path(run) / (stem + std::string(kSegmentSuffix))).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

void write_home(const std::string& live_path, const std::string& copy_path) {
  const PrivateFolder folder(shared_memory_folder(), false);
  // A live segment in the run folder needs none: it is at home.
  if (!folder.ok() || live_path.rfind(folder.path() + "/", 0) != 0) return;
  const std::string name = live_path.substr(folder.path().size() + 1) + std::string(kHomeSuffix);
  if (copy_path.empty()) {
    folder.remove(name);
  } else {
    folder.write_text(name, copy_path + "\n");
  }
}

std::vector<RunSegment> find_segments(const std::string& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) throw Error(run + ": no such run folder");
  std::vector<RunSegment> segments;
  for (const std::string& copy_path : copy_paths(run)) {
    RunSegment segment{
        .path = copy_path, .copy_path = copy_path, .rank = rank_of(fs::path(copy_path).filename().string())};
    const auto pointer = read_live_pointer(copy_path);
    if (pointer && !pointer->path.empty()) take_live(segment, pointer->path, pointer->identity);
    if (segment.live || fs::exists(segment.path, error)) segments.push_back(segment);
  }
  add_without_pointer(run, segments);
  std::stable_sort(segments.begin(), segments.end(), [](const RunSegment& a, const RunSegment& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    std::error_code ignored;
    return fs::last_write_time(a.path, ignored) < fs::last_write_time(b.path, ignored);
  });
  return segments;
}

std::vector<std::string> missing_recordings(const std::string& run) {
  std::vector<std::string> lines;
  for (const std::string& copy_path : copy_paths(run)) {
    std::error_code error;
    const auto pointer = read_live_pointer(copy_path);
    if (!pointer || fs::exists(copy_path, error)) continue;
    const std::string rank = "rank " + std::to_string(rank_of(fs::path(copy_path).filename().string()));
    if (!pointer->path.empty()) {
      RunSegment segment;
      if (!take_live(segment, pointer->path, pointer->identity))
        lines.push_back(rank + " left nothing: " + pointer->path + " is gone");
    } else if (pointer->owner_is_gone()) {
      lines.push_back(rank +
                      " was recorded in memory only, as no file could be made, and its process was killed");
    } else {
      lines.push_back(
          rank + " is recorded in memory only, as no file could be made: take the report in the program");
    }
  }
  return lines;
}

}  // namespace headrace::profile
