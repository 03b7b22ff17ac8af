#include "headrace/profile/rank_neighbours.h"

#include <cstddef>

#include "headrace/profile/layout.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"
#include "headrace/profile/segment.h"
#include "profile/file_calls.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kLookAgainNs = 5'000'000'000;

/// The tree's CPU counter of a live segment of this machine and boot; -1 if there is none.
std::int64_t read_cpu_ns(const std::string& path) noexcept {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  SegmentHeader header;
  if (!file.ok() || !read_header(file.get(), header) || header.boot != boot_identity() ||
      header.owner_pid == current_pid())
    return -1;
  const auto offset = info_of(Section::host).offset + offsetof(metrics::HostCell, live_tree_cpu_ns);
  std::int64_t cpu_ns = -1;
  const bool whole = pread(file.get(), &cpu_ns, sizeof(cpu_ns), static_cast<off_t>(offset)) == sizeof(cpu_ns);
  return whole ? cpu_ns : -1;
}

}  // namespace

void RankNeighbours::look(const std::string& run, const std::string& own_live_path) {
  for (const std::string& copy_path : copy_paths(run)) {
    const auto pointer = read_live_pointer(copy_path);
    if (!pointer || pointer->path.empty() || pointer->path == own_live_path ||
        last_by_path_.contains(pointer->path))
      continue;
    const std::int64_t cpu_ns = read_cpu_ns(pointer->path);
    if (cpu_ns >= 0) last_by_path_[pointer->path] = cpu_ns;
  }
}

std::optional<std::int64_t> RankNeighbours::cpu_ns(const std::string& run, const std::string& own_live_path,
                                                   std::int64_t now) try {
  if (run.empty()) return std::nullopt;
  if (!looked_ || now - looked_ns_ >= kLookAgainNs) {
    look(run, own_live_path);
    looked_ = true;
    looked_ns_ = now;
  }
  for (auto& [path, last] : last_by_path_) {
    const std::int64_t cpu_ns = read_cpu_ns(path);
    if (cpu_ns > last) {
      total_ns_ += cpu_ns - last;
      last = cpu_ns;
    }
  }
  if (last_by_path_.empty()) return std::nullopt;
  return total_ns_;
} catch (...) {
  return std::nullopt;
}

}  // namespace headrace::profile
