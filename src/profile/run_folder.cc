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
#include <fstream>
#include <string_view>

#include "headrace/profile/errors.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".hrseg";
constexpr std::string_view kLiveSuffix = ".live";
/// Beside a live segment: the path of its copy.
constexpr std::string_view kHomeSuffix = ".home";

std::string shared_memory_folder() { return "/dev/shm/headrace-" + std::to_string(geteuid()); }

std::string pointer_of(const std::string& copy_path) {
  return copy_path.substr(0, copy_path.size() - kSuffix.size()) + std::string(kLiveSuffix);
}

/// rank<r>[.n].hrseg -> r; -1 for any other name.
int rank_of(const std::string& name) {
  if (name.rfind("rank", 0) != 0) return -1;
  char* end = nullptr;
  errno = 0;
  const long rank = std::strtol(name.c_str() + 4, &end, 10);
  if (end == name.c_str() + 4 || (*end != '.' && *end != '\0') || errno != 0 || rank < 0) return -1;
  return static_cast<int>(std::min<long>(rank, 1 << 30));
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string read_line(const fs::path& path) {
  std::error_code error;
  // Opening a FIFO that somebody left here would wait for ever.
  if (!fs::is_regular_file(path, error)) return "";
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// What the segment at `path` says of its owner; nothing where it cannot be read.
struct Owner {
  bool running = false;
  bool gone = false;  ///< certainly: it closed, or this is its machine and it runs no more
};
std::optional<Owner> owner_of(const std::string& path) {
  try {
    SegmentImage image;
    image.read_file(path);
    const SegmentHeader& header = image.header();
    // On a shared file system the owner may run on another machine.
    const bool here = header.boot == boot_identity();
    const bool closed = header.closed.load() != 0;
    const bool alive = here && process_alive(header.owner_pid, header.owner_start);
    return Owner{!closed && alive, closed || (here && !alive)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Its owner left a sign of life in the last half minute: a process that cannot be seen from here (of another
/// container that shares this memory) is not dead for that.
bool was_alive_lately(const std::string& path) {
  constexpr std::int64_t kLately = 30'000'000'000;
  try {
    SegmentImage image;
    image.read_file(path);
    std::int64_t last = image.header().opened_ns;
    for (const auto& anchor : image.header().anchors.anchors)
      last = std::max(last, anchor.monotonic_ns.load());
    return image.header().closed.load() == 0 && metrics::Clock::now_ns() - last < kLately;
  } catch (const Error&) {
    return false;
  }
}

/// Lays a dead owner's live segment into the run folder.
void harvest(const std::string& live_path, const std::string& copy_path) {
  std::error_code error;
  const std::string beside = copy_path + ".tmp" + std::to_string(current_pid());
  fs::copy_file(live_path, beside, fs::copy_options::overwrite_existing, error);
  if (error) return;
  fs::rename(beside, copy_path, error);
  if (error) return;
  remove_live_pointer(copy_path);
  fs::remove(live_path, error);
  fs::remove(live_path + std::string(kHomeSuffix), error);
}

}  // namespace

std::string make_run_folder(const std::string& run) {
  std::error_code error;
  const fs::path path(run);
  if (fs::is_directory(path, error)) {
    return access(run.c_str(), W_OK | X_OK) == 0 ? "" : run + ": " + std::strerror(errno);
  }
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (mkdir(run.c_str(), 0700) == 0) return "";
  const int made = errno;
  return made == EEXIST && fs::is_directory(path, error) ? "" : run + ": " + std::strerror(made);
}

std::string shared_memory_path() {
  static std::atomic<unsigned> next{0};
  const std::string folder = shared_memory_folder();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  struct stat info {};
  // A folder somebody else made, or a link, is not used: it would be theirs to read and cut.
  if (lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return "";
  if ((info.st_mode & 077) != 0 && chmod(folder.c_str(), 0700) != 0) return "";
  return folder + "/" + std::to_string(current_pid()) + "-" + std::to_string(process_start(current_pid())) +
         "-" + std::to_string(next.fetch_add(1)) + std::string(kSuffix);
}

std::string free_copy_path(const std::string& run, int rank) {
  for (int number = 1;; ++number) {
    std::string path = run + "/rank" + std::to_string(rank);
    if (number > 1) path += "." + std::to_string(number);
    // The pointer reserves the name, so two processes that start at once get two names.
    const std::string pointer = path + std::string(kLiveSuffix);
    if (access((path + std::string(kSuffix)).c_str(), F_OK) == 0) continue;
    const int fd = open(pointer.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (fd >= 0 || errno != EEXIST || number > 10000) return path + std::string(kSuffix);
  }
}

void write_live_pointer(const std::string& copy_path, const std::string& live_path) {
  std::ofstream(pointer_of(copy_path)) << live_path << "\n";
  // The other way round as well: whoever finds the segment of a dead process knows where it belongs.
  if (!live_path.empty()) std::ofstream(live_path + std::string(kHomeSuffix)) << copy_path << "\n";
}

void remove_live_pointer(const std::string& copy_path) {
  const std::string pointer = pointer_of(copy_path);
  const std::string live_path = read_line(pointer);
  if (!live_path.empty()) unlink((live_path + std::string(kHomeSuffix)).c_str());
  unlink(pointer.c_str());
}

void remove_home(const std::string& live_path) {
  if (!live_path.empty()) unlink((live_path + std::string(kHomeSuffix)).c_str());
}

void harvest_leftovers() try {
  constexpr int kAtOnce = 16;
  std::error_code error;
  int looked = 0;
  for (const auto& entry : fs::directory_iterator(shared_memory_folder(), error)) {
    const std::string path = entry.path().string();
    if (!ends_with(path, kSuffix)) continue;
    if (++looked > kAtOnce) return;
    // <pid>-<start>-<n>.hrseg
    char* end = nullptr;
    const std::string name = entry.path().filename().string();
    const long pid = std::strtol(name.c_str(), &end, 10);
    const std::uint64_t start = *end == '-' ? std::strtoull(end + 1, nullptr, 10) : 0;
    if (start == 0 || process_alive(static_cast<int>(pid), start)) continue;
    if (was_alive_lately(path)) continue;
    const std::string copy_path = read_line(path + std::string(kHomeSuffix));
    if (copy_path.empty()) {
      unlink(path.c_str());
    } else if (fs::is_directory(fs::path(copy_path).parent_path(), error)) {
      harvest(path, copy_path);
    }
  }
} catch (...) {
  // Somebody else's turn.
}

std::vector<RunSegment> find_segments(const std::string& run) {
  std::error_code error;
  if (!fs::is_directory(run, error)) throw Error(run + ": no such run folder");
  std::vector<std::string> stems;
  for (const auto& entry : fs::directory_iterator(run, error)) {
    const std::string name = entry.path().filename().string();
    if (rank_of(name) < 0) continue;
    for (const std::string_view suffix : {kSuffix, kLiveSuffix}) {
      if (ends_with(name, suffix)) stems.push_back(name.substr(0, name.size() - suffix.size()));
    }
  }
  std::sort(stems.begin(), stems.end());
  stems.erase(std::unique(stems.begin(), stems.end()), stems.end());
  std::vector<RunSegment> segments;
  for (const std::string& stem : stems) {
    RunSegment segment;
    segment.rank = rank_of(stem);
    segment.copy_path = (fs::path(run) / (stem + std::string(kSuffix))).string();
    segment.path = segment.copy_path;
    const std::string live_path = read_line(fs::path(run) / (stem + std::string(kLiveSuffix)));
    const auto owner = live_path.empty() ? std::nullopt : owner_of(live_path);
    if (owner) {
      segment.running = owner->running;
      if (owner->gone) harvest(live_path, segment.copy_path);
      segment.live = fs::exists(live_path, error);
      if (segment.live) segment.path = live_path;
    }
    if (fs::exists(segment.path, error)) segments.push_back(segment);
  }
  std::stable_sort(segments.begin(), segments.end(), [](const RunSegment& a, const RunSegment& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    std::error_code ignored;
    return fs::last_write_time(a.path, ignored) < fs::last_write_time(b.path, ignored);
  });
  return segments;
}

}  // namespace headrace::profile
