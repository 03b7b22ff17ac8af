#include "host_process_tree.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>

#include "headrace/metrics/clock.h"
#include "headrace/profile/host/kernel_text.h"
#include "headrace/profile/process_identity.h"
#include "host_kernel_file.h"

namespace headrace::profile {
namespace {

std::int64_t to_ns(const timespec& time) noexcept {
  return static_cast<std::int64_t>(time.tv_sec) * kSecondNs + time.tv_nsec;
}

std::int64_t to_ns(const timeval& time) noexcept {
  return static_cast<std::int64_t>(time.tv_sec) * kSecondNs + static_cast<std::int64_t>(time.tv_usec) * 1000;
}

std::int64_t read_resident_bytes(int pid) noexcept {
  static const std::int64_t page = sysconf(_SC_PAGESIZE);
  std::array<char, 64> path{};
  std::array<char, 256> text;
  std::snprintf(path.data(), path.size(), "/proc/%d/statm", pid);
  return parse_resident_pages(KernelFile::read_once(path.data(), text)).value_or(0) * page;
}

/// CPU time of a process to the nanosecond; -1 if there is none of that number.
std::int64_t process_clock(int pid) noexcept {
  // The kernel's encoding, as clock_getcpuclockid(3) gives it: bits 0-1 the scheduler's clock, bit 2 clear:
  // process.
  const auto id = static_cast<clockid_t>(~static_cast<unsigned>(pid) << 3 | 2U);
  timespec time{};
  return clock_gettime(id, &time) == 0 ? to_ns(time) : -1;
}

std::int64_t own_reaped() noexcept {
  rusage usage{};
  if (getrusage(RUSAGE_CHILDREN, &usage) != 0) return 0;
  return to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
}

}  // namespace

ProcessTree::ProcessTree(int self) : self_(self) {
  timespec since_boot{};
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  watched_since_ = static_cast<std::uint64_t>(to_ns(since_boot) / tick_ns());
  // Start 0: whatever this process used so far was used before.
  add(self, 0, 0, std::max<std::int64_t>(0, process_clock(self)), own_reaped());
}

bool ProcessTree::is_member(int pid) const noexcept {
  return std::binary_search(members_.begin(), members_.end(), Member{.pid = pid},
                            [](const Member& a, const Member& b) { return a.pid < b.pid; });
}

ProcessTree::Member* ProcessTree::member(int pid) noexcept {
  const auto at = std::lower_bound(members_.begin(), members_.end(), pid,
                                   [](const Member& a, int wanted) { return a.pid < wanted; });
  return at != members_.end() && at->pid == pid ? &*at : nullptr;
}

void ProcessTree::add(int pid, int parent, std::uint64_t start, std::int64_t own_ns, std::int64_t reaped_ns) {
  Member added{.pid = pid, .parent = parent, .start = start, .own_ns = own_ns, .reaped_ns = reaped_ns};
  // From here on both accounts grow side by side.
  added.gone_ns = reaped_ns;
  if (start < watched_since_) added.base_ns = added.used_ns();
  const auto at = std::lower_bound(members_.begin(), members_.end(), pid,
                                   [](const Member& a, int wanted) { return a.pid < wanted; });
  members_.insert(at, added);
}

void ProcessTree::adopt(int pid, std::uint64_t start) {
  if (is_member(pid)) return;
  const auto stat = read_process_stat(pid);
  if (!stat || stat->start != start) return;
  const std::int64_t clock = process_clock(pid);
  add(pid, stat->parent, start, clock >= 0 ? clock : stat->own_ns, stat->reaped_ns);
}

void ProcessTree::find_members() {
  struct Newcomer {
    int pid;
    ProcessStat stat;
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return;
  std::vector<Newcomer> newcomers;
  next_strangers_.clear();
  while (const dirent* entry = readdir(proc.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const int pid = std::atoi(entry->d_name);
    if (is_member(pid)) continue;
    if (std::binary_search(strangers_.begin(), strangers_.end(), pid)) {
      next_strangers_.push_back(pid);
    } else if (const auto stat = read_process_stat(pid)) {
      newcomers.push_back({pid, *stat});
    }
  }
  // A child may come before its parent where numbers have wrapped around.
  for (bool found = true; found;) {
    found = false;
    for (Newcomer& newcomer : newcomers) {
      if (newcomer.pid == 0 || !is_member(newcomer.stat.parent)) continue;
      adopt(newcomer.pid, newcomer.stat.start);
      newcomer.pid = 0;
      found = true;
    }
  }
  for (const Newcomer& newcomer : newcomers) {
    if (newcomer.pid != 0) next_strangers_.push_back(newcomer.pid);
  }
  std::sort(next_strangers_.begin(), next_strangers_.end());
  strangers_.swap(next_strangers_);
}

void ProcessTree::read_own(Member& member) noexcept {
  const std::int64_t clock = process_clock(member.pid);
  if (clock >= member.own_ns) {
    member.own_ns = clock;
    return;
  }
  // Gone, or its number has a new owner, or this kernel gives no clocks of other processes.
  const auto stat = read_process_stat(member.pid);
  if (stat && stat->start == member.start) {
    member.own_ns = std::max(member.own_ns, stat->own_ns);
  } else {
    member.ended = true;
  }
}

void ProcessTree::refresh() noexcept {
  std::int64_t resident = 0;
  for (Member& member : members_) {
    resident += read_resident_bytes(member.pid);
    if (member.pid == self_) continue;
    const auto stat = read_process_stat(member.pid);
    if (!stat || stat->start != member.start) {
      member.ended = true;
    } else {
      member.reaped_ns = std::max(member.reaped_ns, stat->reaped_ns);
      member.parent = stat->parent;
    }
  }
  memory_bytes_ = resident;
}

std::int64_t ProcessTree::cpu_ns(std::int64_t self_ns) noexcept {
  if (Member* self = member(self_)) {
    self->reaped_ns = std::max(self->reaped_ns, own_reaped());
    self->own_ns = std::max(self->own_ns, self_ns);
  }
  for (Member& member : members_) {
    if (!member.ended && member.pid != self_) read_own(member);
  }
  remove_ended();
  std::int64_t sum = settled_ns_;
  for (const Member& member : members_) sum += member.used_ns() - member.base_ns;
  highest_ns_ = std::max(highest_ns_, sum);
  return highest_ns_;
}

void ProcessTree::remove_ended() noexcept {
  for (Member& ended : members_) {
    if (!ended.ended) continue;
    settled_ns_ -= ended.base_ns;
    Member* parent = member(ended.parent);
    (parent != nullptr ? parent->gone_ns : settled_ns_) += ended.used_ns();
    // Its children, ended or not, are settled with the next one up.
    for (Member& child : members_) {
      if (child.parent == ended.pid) child.parent = ended.parent;
    }
  }
  std::erase_if(members_, [](const Member& member) { return member.ended; });
}

}  // namespace headrace::profile
