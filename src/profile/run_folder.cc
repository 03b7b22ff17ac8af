#include "headrace/profile/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "headrace/profile/errors.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment_image.h"
#include "profile/live_segments.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPointerSuffix = ".live";

}  // namespace

int default_rank() {
  for (const char* name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK_ID"}) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const long rank = std::strtol(text, &end, 10);
    if (*end == '\0' && rank >= 0 && rank < (1L << 30)) return static_cast<int>(rank);
  }
  return 0;
}

int rank_of_file(const std::string& name) {
  if (name.rfind("rank", 0) != 0) return -1;
  char* end = nullptr;
  errno = 0;
  const long rank = std::strtol(name.c_str() + 4, &end, 10);
  if (end == name.c_str() + 4 || (*end != '.' && *end != '\0') || errno != 0 || rank < 0) return -1;
  return static_cast<int>(std::min<long>(rank, 1 << 30));
}

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

bool is_copy_path(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return name.ends_with(kSegmentSuffix) && rank_of_file(name) >= 0;
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
      if (rank_of_file(name) < 0 || !name.ends_with(suffix)) continue;
      const std::string stem = name.substr(0, name.size() - suffix.size());
      paths.push_back((fs::path(run) / (stem + std::string(kSegmentSuffix))).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::vector<RunSegment> find_segments(const std::string& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) throw Error(run + ": no such run folder");
  std::vector<RunSegment> segments;
  for (const std::string& copy_path : copy_paths(run)) {
    RunSegment segment{.path = copy_path,
                       .copy_path = copy_path,
                       .rank = rank_of_file(fs::path(copy_path).filename().string())};
    const auto pointer = read_live_pointer(copy_path);
    if (pointer && !pointer->path.empty()) take_live(segment, pointer->path, pointer->identity);
    if (segment.live || fs::exists(segment.path, error)) segments.push_back(segment);
  }
  add_without_pointer(run, segments);
  for (const RunSegment& segment : segments)
    if (segment.live) SegmentImage::expect_copy(segment.path, segment.copy_path);
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
    const std::string rank = "rank " + std::to_string(rank_of_file(fs::path(copy_path).filename().string()));
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
