// One worker (thread or process): its identity and its current state.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "headrace/metrics/relaxed.h"
#include "headrace/metrics/seqlock.h"
#include "headrace/metrics/windows.h"

namespace headrace::metrics {

/// A worker is always in exactly one state; busy time is kept per operator, in its OperatorCells.
enum class WorkerState : std::uint32_t {
  idle = 0,         ///< not started, finished or between calls
  blocked_in = 1,   ///< input queue empty
  blocked_out = 2,  ///< output queue full
  computing = 3,    ///< the sink's own step
};
inline constexpr std::uint32_t kWorkerStates = 4;

/// `account` below this is a WorkerState, above it is kOperatorAccount + index of the operator cell.
inline constexpr std::uint32_t kOperatorAccount = 16;

/// Life of a worker cell. Claimed by compare-and-swap, so any process of the run may take one.
enum class WorkerLife : std::uint32_t { free = 0, claimed = 1, live = 2, finished = 3, retired = 4 };

/// One queue that this worker puts to or gets from.
struct WorkerEdge {
  Relaxed<std::uint32_t> queue;  ///< 1 + queue index; 0: unused
  Relaxed<std::uint32_t> is_put;
  Relaxed<std::uint64_t> items;  ///< end marks not counted
};

struct alignas(64) WorkerCell {
  std::atomic<std::uint32_t> life;
  Relaxed<std::int32_t> pid;
  Relaxed<std::int32_t> tid;
  Relaxed<std::uint32_t> is_sink;
  Relaxed<std::uint64_t>
      process_start;  ///< field 22 of /proc/pid/stat: tells a recycled pid from the old process
  Relaxed<std::int64_t> started_ns;  ///< Clock at registration
  Relaxed<std::int64_t> ended_ns;    ///< Clock at the end; 0 while it lives
  // A worker process of a framework's loader: whose, of which pass, and its number there.
  Relaxed<std::uint32_t> loader;  ///< 1 + loader; 0: no such worker
  Relaxed<std::uint32_t> pass;
  Relaxed<std::int32_t> number;
  Relaxed<std::int32_t> siblings;  ///< workers of that pass, itself included

  // One group under the seqlock: account, since, state_ns and busy_ns of the cells it owns always sum to loop
  // time.
  alignas(64) Seqlock lock;
  Relaxed<std::uint32_t> account;
  Relaxed<std::int64_t> since_ns;  ///< loop time
  std::array<Relaxed<std::int64_t>, kWorkerStates> state_ns;
  Relaxed<std::uint32_t> begun;  ///< 1: counted since the loop began
  WindowGrid grid;
  std::array<WorkerEdge, 8> edges;
  WindowLog<kWorkerStates> windows;

  // Written by the sampler of the owning process, never by the worker.
  alignas(64) Relaxed<std::int64_t> cpu_ns;  ///< CPU time of the thread since the loop began; -1 unknown
  Relaxed<std::int64_t> run_queue_ns;        ///< runnable without a core, since the loop began; -1 unknown
  Relaxed<std::int64_t> last_alive_ns;       ///< Clock at which the thread was last seen alive

  // Written by the worker, where it reads its CPU clock for a sample: what it used between two reads, and how
  // long that was. Sampled items are a part of it; this is all of it.
  Relaxed<std::int64_t> clocked_cpu_ns;
  Relaxed<std::int64_t> clocked_loop_ns;

  // Written by the sampler, too.
  Relaxed<std::int64_t> read_bytes;     ///< by read calls of the thread since the loop began; -1 unknown
  Relaxed<std::int64_t> read_calls;     ///< these calls; -1 unknown
  Relaxed<std::int64_t> storage_bytes;  ///< fetched from storage for the thread; -1 unknown
  Relaxed<std::int64_t> major_faults;   ///< page faults that had to read from storage; -1 unknown
  // The worker's process, if that is not the sink's: CPU time of all its threads, -1 unknown; the most
  // threads that it was seen with, 0 unknown.
  Relaxed<std::int64_t> process_cpu_ns;
  Relaxed<std::int32_t> process_threads;
  Relaxed<std::int32_t> allowed_cores;  ///< that the thread may run on; 0 unknown

  // Written by the worker.
  Relaxed<std::int64_t> gc_ns;           ///< in the interpreter's garbage collector, since the loop began
  Relaxed<std::int64_t> out_of_data_ns;  ///< its part of a stream had no more items
  Relaxed<std::int64_t> out_of_data_since_ns;  ///< 1 + loop time since which that is so; 0: it is not
};

}  // namespace headrace::metrics
