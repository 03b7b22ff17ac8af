// The kernel's counter files, read as text: /proc/stat, schedstat, pressure and cgroup files of both
// versions.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::profile {

/// Every parser takes the text of one file and gives nothing if a line is missing, cut short or no number,
/// so that a figure stays unknown instead of becoming 0. None throws or allocates, except `find_cpu_cgroup`.

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

/// One tick of /proc's times (USER_HZ); 10 ms nearly everywhere.
std::int64_t tick_ns() noexcept;

/// The number behind `name` and blanks: "rchar: 12". `name` may begin with the newline before it, and may be
/// empty. A blank or newline behind the number proves that it is whole.
std::optional<std::int64_t> parse_number_behind(std::string_view text, std::string_view name) noexcept;

inline constexpr std::size_t kMaxCpus = 8192;
using CpuSet = std::bitset<kMaxCpus>;

/// `/proc/<pid>/task/<tid>/schedstat`: "on CPU, waiting for a core, slices".
struct SchedStat {
  std::int64_t cpu_ns = 0;
  std::int64_t run_queue_ns = 0;
};
std::optional<SchedStat> parse_schedstat(std::string_view text) noexcept;

/// `/proc/<pid>/stat`, or a thread's, `/proc/<pid>/task/<tid>/stat`. The command's name may hold spaces,
/// brackets and newlines.
struct ProcessStat {
  char state = '?';
  int parent = 0;
  std::int64_t own_ns = 0;     ///< utime + stime, in whole ticks
  std::int64_t reaped_ns = 0;  ///< cutime + cstime: of ended and waited-for children, theirs included
  std::uint64_t start = 0;     ///< ticks since boot
  std::int64_t major_faults = 0;
  std::int64_t threads = 0;
};
std::optional<ProcessStat> parse_process_stat(std::string_view text, std::int64_t tick_ns) noexcept;

/// `/proc/<pid>/task/<tid>/syscall` of a thread that sleeps: "202 0x7f00deadbeef 0x80 ...". Not "running".
struct SystemCall {
  long number = -1;                       ///< below 0: it sleeps outside of one
  std::optional<std::uint64_t> argument;  ///< the first
};
std::optional<SystemCall> parse_system_call(std::string_view text) noexcept;

/// The type of the mount `id` in a `mountinfo`, up to the first dot ("fuse" of "fuse.sshfs"); "" if it is not
/// there.
std::string_view mount_type(std::string_view mountinfo, std::int64_t id) noexcept;

/// Second field of `/proc/<pid>/statm`.
std::optional<std::int64_t> parse_resident_pages(std::string_view text) noexcept;

/// /proc/stat: busy time (user, nice, system, irq, softirq, steal; guest time is in user already) of `cpus`.
/// Nothing if the text ends within the CPUs' lines or names none of `cpus`.
std::optional<std::int64_t> parse_busy_ns(std::string_view text, const CpuSet& cpus,
                                          std::int64_t tick_ns) noexcept;

/// "some ... total=<us>" of a pressure file, in ns.
std::optional<std::int64_t> parse_pressure_ns(std::string_view text) noexcept;

/// cpu.stat: `throttled_usec` (version 2) or `throttled_time` (version 1), in ns. The kernel adds up the run
/// queues of all CPUs, so with n CPUs held back it grows by n ns per ns.
std::optional<std::int64_t> parse_throttled_ns(std::string_view text) noexcept;

/// Cores of a quota: infinite for "max" or -1, nothing if the text is neither.
std::optional<double> parse_cpu_max(std::string_view text) noexcept;
std::optional<double> parse_cfs_quota(std::string_view quota_us, std::string_view period_us) noexcept;

/// The cgroup that limits this process's CPU.
struct CpuCgroup {
  int version = 2;
  std::string mount;  ///< "/sys/fs/cgroup/cpu"
  std::string path;   ///< below the mount; "" or "/a/b"
};
/// From /proc/self/cgroup and /proc/self/mountinfo. A path that the mount does not show (a container's view)
/// becomes the mount's root.
std::optional<CpuCgroup> find_cpu_cgroup(std::string_view cgroup, std::string_view mountinfo);

}  // namespace headrace::profile
