#include "headrace/profile/rank_neighbours.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/profile/layout.h"
#include "headrace/profile/live_pointer.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"

namespace headrace::profile {
namespace {

constexpr std::int64_t kLookAgainNs = 5'000'000'000;

/// The tree's CPU counter of a live segment of this machine and boot; -1 if there is none.
std::int64_t read_cpu_ns(const std::string& path) noexcept {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  alignas(SegmentHeader) std::array<char, sizeof(SegmentHeader)> bytes{};
  std::int64_t cpu_ns = -1;
  if (pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) {
    const auto& header = *reinterpret_cast<const SegmentHeader*>(bytes.data());
    const bool ours = header.magic == kMagic && header.layout_version == kLayoutVersion &&
                      header.checksum == header_checksum(header) && header.boot == boot_identity() &&
                      header.owner_pid != current_pid();
    if (ours) {
      const auto offset = header.sections[static_cast<std::size_t>(Section::host)].offset +
                          offsetof(metrics::HostCell, live_tree_cpu_ns);
      if (pread(fd, &cpu_ns, sizeof(cpu_ns), static_cast<off_t>(offset)) != sizeof(cpu_ns)) cpu_ns = -1;
    }
  }
  close(fd);
  return cpu_ns;
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
