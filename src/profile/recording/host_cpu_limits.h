// The cores that a process may use: its affinity and its cgroup's quota.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace headrace::profile
