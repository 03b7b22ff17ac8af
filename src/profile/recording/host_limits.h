// Cores and memory that the machine and the cgroup leave to a process, and signs that they are short.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/host/kernel_text.h"
#include "host_kernel_file.h"

namespace headrace::profile {

/// Affinity of a thread of any process (for a process: of its first thread); empty where it cannot be read.
CpuSet allowed_cpus(int tid) noexcept;

/// This process's cgroup with a CPU controller, from files below `proc` ("/proc"). May throw std::bad_alloc.
std::optional<CpuCgroup> own_cgroup(const std::string& proc);

/// The tightest quota of all cgroups from the process's own one up decides.
class CpuQuota {
 public:
  /// `cgroup`: of this process, as `own_cgroup` finds it. May throw std::bad_alloc.
  explicit CpuQuota(const std::optional<CpuCgroup>& cgroup);

  /// Cores that the quota allows; infinite if there is none.
  double cores() noexcept;
  /// Time throttled since the cgroup was made, all its CPUs added up.
  std::optional<std::int64_t> throttled_ns() noexcept;

 private:
  int version_ = 2;
  std::string folder_;  ///< empty: no cgroup with a CPU controller
  KernelFile stat_;
};

/// Cores that `allowed_cpus` and a quota leave together, rounded up; at least 1.
std::uint32_t usable_cores(std::size_t allowed_cpus, double quota_cores) noexcept;

/// Signs that memory is short: waiting for it, pages that come back, swap.
class HostMemory {
 public:
  /// Reads below `proc` ("/proc"), and in this process's `cgroup` if that is of version 2, where all controllers
  /// share one folder. May throw std::bad_alloc.
  HostMemory(const std::string& proc, const std::optional<CpuCgroup>& cgroup);

  /// Time for which some task waited for memory, ns.
  std::optional<std::int64_t> pressure_ns() noexcept;

  struct Traffic {
    std::optional<std::int64_t> refaulted_bytes;
    std::optional<std::int64_t> swapped_in_bytes;
  };
  /// The whole machine's, since boot.
  Traffic traffic() noexcept;

  /// Bytes left for processes of this run: the machine's, or what the cgroup's limit leaves.
  std::optional<std::int64_t> available_bytes() noexcept;

 private:
  KernelFile pressure_;
  KernelFile vmstat_;
  KernelFile meminfo_;
  std::string cgroup_;  ///< folder of this process's cgroup (version 2); empty: none
  std::vector<char> text_;
  std::int64_t page_bytes_;
};

}  // namespace headrace::profile
