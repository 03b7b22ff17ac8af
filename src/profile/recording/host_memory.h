// Signs that memory is short: waiting for it, pages that come back, swap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/host/kernel_text.h"
#include "host_kernel_file.h"

namespace headrace::profile {

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
