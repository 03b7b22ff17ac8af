// Running totals of the machine per window while the loop ran, written by the run's one sampler.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/metrics/relaxed.h"
#include "headrace/metrics/windows.h"

namespace headrace::metrics {

/// Since the loop began, pauses left out; nanoseconds unless the comment names another unit. A figure that
/// this machine cannot give stays kUnknown.
enum class HostFigure : int {
  covered = 0,      ///< loop time that the samples cover
  tree_cpu,         ///< CPU time of this rank's process tree
  process_cpu,      ///< CPU time of the sink's own process
  other_ranks_cpu,  ///< CPU time of the run's other ranks on this machine
  busy,             ///< busy CPU time of the CPUs that this process may use, steal included, whoever used it
  throttled,        ///< time the cgroup was held back by its CPU quota
  io_pressure,      ///< time at least one task waited for I/O (PSI "some")
  cpu_pressure,     ///< time at least one task waited for a core (PSI "some")
  memory_pressure,  ///< time at least one task waited for memory (PSI "some")
  refaulted,        ///< bytes read again soon after they were evicted from the page cache
  swapped_in,       ///< bytes read back from swap
  count
};
inline constexpr int kHostFigures = static_cast<int>(HostFigure::count);

struct alignas(64) HostCell {
  static constexpr std::int64_t kUnknown = -1;

  Relaxed<std::uint32_t> begun;
  Relaxed<std::uint32_t> cores;               ///< cores that affinity and quota allow, rounded up
  Relaxed<std::uint32_t> available;           ///< bit per HostFigure
  Relaxed<std::int64_t> memory_bytes;         ///< resident, process tree; 0 unknown
  Relaxed<std::int64_t> shared_memory_bytes;  ///< free in /dev/shm, the least that was seen; 0 unknown
  // Allocatable memory, as first read while the loop ran and as last read; 0 unknown.
  Relaxed<std::int64_t> first_available_bytes;
  Relaxed<std::int64_t> first_available_ns;  ///< Clock
  Relaxed<std::int64_t> available_bytes;
  Relaxed<std::int64_t> available_ns;      ///< Clock
  Relaxed<std::uint64_t> gil_probes;       ///< probes of the interpreter lock; 0: never probed
  Relaxed<std::uint64_t> gil_contended;    ///< ... that waited for more than 1 ms
  Relaxed<std::int64_t> live_tree_cpu_ns;  ///< CPU time of the tree since the run opened; other ranks read it
  std::array<Relaxed<std::int64_t>, kHostFigures> totals;
  WindowGrid grid;
  WindowLog<kHostFigures> windows;
};

}  // namespace headrace::metrics
