#include "headrace/profile/orphans.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/private_folder.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/segment.h"
#include "headrace/profile/segment_image.h"
#include "profile/file_calls.h"

namespace headrace::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::time_t kStays = std::time_t{24} * 60 * 60;
/// Limit for one start; the next one continues.
constexpr int kAtOnce = 64;

/// <pid>-<start>-<n>.hrseg: the process may still run.
bool may_run(const std::string& name) {
  char* end = nullptr;
  const long pid = std::strtol(name.c_str(), &end, 10);
  const std::uint64_t start = *end == '-' ? std::strtoull(end + 1, nullptr, 10) : 0;
  return start != 0 && process_alive(static_cast<int>(pid), start);
}

/// Its owner belongs to another container that shares this memory, where its pid means nothing, and left a
/// sign of life in the last half minute.
bool runs_elsewhere(const SegmentHeader& header) {
  constexpr std::int64_t kLately = 30'000'000'000;
  if (header.pid_namespace == pid_namespace() || header.boot != boot_identity()) return false;
  std::int64_t last = header.opened_ns;
  for (const auto& anchor : header.anchors.anchors) last = std::max(last, anchor.monotonic_ns.load());
  return header.closed.load() == 0 && metrics::Clock::now_ns() - last < kLately;
}

bool is_old(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && std::time(nullptr) - info.st_mtime > kStays;
}

/// False if that fails.
bool copy_live(int live, const std::string& name, const std::string& copy_path) try {
  SegmentImage image;
  image.include_history();
  image.read_descriptor(live, name);
  write_copy(image, copy_path);
  return true;
} catch (const Error&) {
  return false;
}

/// True if `copy_path` is the place of this very segment: in a folder that is there, with its pointer.
bool belongs_at(const std::string& copy_path, const SegmentHeader& header) {
  const auto pointer = is_copy_path(copy_path) ? read_live_pointer(copy_path) : std::nullopt;
  return pointer && pointer->identity == header.identity;
}

/// True when the segment needs to be kept no longer.
bool collect(int live, const std::string& name, const std::string& copy_path) {
  SegmentHeader header;
  if (!read_header(live, header)) return is_old(live);
  if (runs_elsewhere(header)) return false;
  if (copy_path.empty()) return true;
  std::error_code error;
  const auto folder = fs::status(fs::path(copy_path).parent_path(), error);
  if (folder.type() == fs::file_type::not_found) return true;
  if (!belongs_at(copy_path, header) || !copy_live(live, name, copy_path)) return is_old(live);
  remove_live_pointer(copy_path);
  return true;
}

void collect_from_shared_memory() {
  const PrivateFolder folder(shared_memory_folder(), false);
  std::vector<std::string> names;
  folder.each([&](const std::string& name) {
    if (name.ends_with(kSegmentSuffix) && !may_run(name)) names.push_back(name);
  });
  int collected = 0;
  for (const std::string& name : names) {
    const Descriptor live(folder.open_file(name));
    if (!live.ok()) continue;
    const std::string copy_path = folder.read_line(name + std::string(kHomeSuffix));
    if (!collect(live.get(), folder.path() + "/" + name, copy_path)) continue;
    folder.remove(name);
    folder.remove(name + std::string(kHomeSuffix));
    if (++collected == kAtOnce) return;
  }
}

// The live segment is in the run folder itself if shared memory was short.
void collect_in(const std::string& run) {
  for (const std::string& copy_path : copy_paths(run)) {
    const auto pointer = read_live_pointer(copy_path);
    const std::string live_path = copy_path + std::string(kLiveSegmentSuffix);
    if (!pointer || pointer->path != live_path || !pointer->owner_is_gone()) continue;
    const Descriptor live(open(live_path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!live.ok() || !is_own_file(live.get()) || !collect(live.get(), live_path, copy_path)) continue;
    unlink(live_path.c_str());
  }
}

// Remains of a process that was killed while it wrote a copy.
void remove_half_copies(const std::string& run) {
  constexpr auto kWriting = std::chrono::minutes(1);
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator entry(run, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (is_half_copy(entry->path().filename().string()) && entry->is_regular_file(ignored) &&
        now - entry->last_write_time(ignored) > kWriting)
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace

void collect_orphans(const std::string& run) noexcept try {
  collect_from_shared_memory();
  if (run.empty()) return;
  collect_in(run);
  remove_half_copies(run);
} catch (...) {
  // No memory, or a folder that vanished: the next start continues.
}

}  // namespace headrace::profile
