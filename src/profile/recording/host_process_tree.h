// CPU time and memory of a process and of all that descend from it.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::profile {

/// Keeps one invariant: what a process has used stays counted when it ends.
///
/// A process's CPU time moves into its parent's account of ended children when the parent waits for it. So
/// each member counts as
///
///     own + max(reaped, gone)       reaped: the kernel's account, which knows also of children too short to
///     be met
///                                   gone:   last known time of the members that ended below it, which holds
///                                   at once
///                                           and also where nobody waits (SIGCHLD ignored, parent dead)
///
/// and every sum is taken accounts first, live clocks second, so that nothing is met twice. One thread only.
class ProcessTree {
 public:
  explicit ProcessTree(int self);

  /// Looks for new processes in all of /proc. New pids cost 7 us each, known ones 0.3 us.
  ///
  /// Not by /proc/<pid>/task/*/children: that is one file per thread, and loaders have hundreds.
  void find_members();
  /// Counts a process in that may have been started by somebody else (a worker of the run in a daemon's
  /// tree).
  void adopt(int pid, std::uint64_t start);
  /// The members' accounts of ended children, and their memory. About 13 us per process.
  void refresh() noexcept;
  /// CPU time of the tree since this object was made, in ns; never falls. About 0.5 us per process.
  /// `self_ns` is this process's own (its clock walks over all its threads: it is read once a sample).
  std::int64_t cpu_ns(std::int64_t self_ns) noexcept;
  /// Resident bytes as of the last refresh; pages that processes share count in each. 0: unknown.
  std::int64_t memory_bytes() const noexcept { return memory_bytes_; }
  std::size_t size() const noexcept { return members_.size(); }

 private:
  struct Member {
    int pid = 0;
    int parent = 0;
    std::uint64_t start = 0;
    std::int64_t own_ns = 0;
    std::int64_t reaped_ns = 0;
    std::int64_t gone_ns = 0;
    std::int64_t base_ns = 0;  ///< used before this object was made
    bool ended = false;

    std::int64_t used_ns() const noexcept { return own_ns + (reaped_ns > gone_ns ? reaped_ns : gone_ns); }
  };

  bool is_member(int pid) const noexcept;
  Member* member(int pid) noexcept;
  void add(int pid, int parent, std::uint64_t start, std::int64_t own_ns, std::int64_t reaped_ns);
  void read_own(Member& member) noexcept;
  void remove_ended() noexcept;

  int self_;
  std::uint64_t watched_since_;  ///< ticks since boot
  std::vector<Member> members_;  ///< by pid
  std::vector<int> strangers_;   ///< pids looked at that do not descend from here, ascending
  std::vector<int> next_strangers_;
  std::int64_t settled_ns_ = 0;  ///< of ended members whose parent is none; less what was used before
  std::int64_t highest_ns_ = 0;
  std::int64_t memory_bytes_ = 0;
};

}  // namespace headrace::profile
