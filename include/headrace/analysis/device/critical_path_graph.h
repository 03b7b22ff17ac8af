// Dependencies in a part of a trace: the graph in which the critical path is looked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "headrace/analysis/device/device_work.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

struct CriticalPathOptions {
  Scope scope;
  /// The part that is looked at: from the first to the last moment of the host's ranges whose name contains
  /// this ("ProfilerStep"), those numbered `first_instance` to `last_instance` in the order of time, from 0.
  /// Empty: the whole scope.
  std::string annotation;
  std::size_t first_instance = 0;
  std::size_t last_instance = 0;
  /// Ranges whose name contains one of these load data: they are events of the graph, and time in them or in
  /// what they call is bound by `data_loading`.
  std::vector<std::string> data_load_events = {"enumerate(DataLoader)", "enumerate(DataPipe)"};
  /// Ties all other work to its launch too, with edges of no weight, so that a path may go from any launch to
  /// its work.
  bool zero_weight_launch_edges = false;
  /// A longer gap between two pieces of work of a stream is not a delay of the device.
  std::int64_t longest_kernel_gap_ns = 1'500'000;
  /// Calls that one lock of the runtime lets through one by one, on whatever thread.
  std::vector<std::string> lock_calls = {
      "cudaHostAlloc",         "cudaLaunchKernel", "cudaLaunchKernelExC",
      "cudaMemcpyAsync",       "cuLaunchKernel",   "cuLaunchKernelEx",
      "hipHostMalloc",         "hipLaunchKernel",  "hipExtModuleLaunchKernel",
      "hipModuleLaunchKernel", "hipMemcpyAsync"};
  /// Calls that wait: their own time is not work of the host.
  std::vector<std::string> blocking_calls = {"cudaDeviceSynchronize",
                                             "cudaStreamSynchronize",
                                             "cudaEventQuery",
                                             "cudaEventSynchronize",
                                             "cudaMemcpy",
                                             "cudaMemcpyAsync",
                                             "cuCtxSynchronize",
                                             "cuStreamSynchronize",
                                             "cuEventSynchronize",
                                             "hipDeviceSynchronize",
                                             "hipStreamSynchronize",
                                             "hipEventQuery",
                                             "hipEventSynchronize",
                                             "hipMemcpy",
                                             "hipMemcpyAsync",
                                             "hipMemcpyWithStream",
                                             "AscendCL@aclrtSynchronizeDevice",
                                             "AscendCL@aclrtSynchronizeStream",
                                             "AscendCL@aclrtSynchronizeStreamWithTimeout",
                                             "AscendCL@aclrtSynchronizeEvent",
                                             "AscendCL@aclrtMemcpy",
                                             "Runtime@DeviceSynchronize",
                                             "Runtime@StreamSynchronize",
                                             "Runtime@EventSynchronize"};
};

enum class EdgeType : std::uint8_t {
  operator_kernel,      ///< something ran: an operator, a call, a kernel
  dependency,           ///< one had to come after the other, nothing ran between
  launch_delay,         ///< from a launch to its work, where nothing else kept the work from starting
  kernel_kernel_delay,  ///< from the end of a piece of work to the start of the next on its stream
  sync_dependency,      ///< a wait of the host or of a stream for the device
};

const char* to_string(EdgeType type) noexcept;

/// Flat arrays; nodes and edges are named by their index. Plain data.
struct CriticalPathGraph {
  using Node = std::uint32_t;
  static constexpr Node kNoNode = std::numeric_limits<Node>::max();

  /// The start and the end of each event, by time, at the same time by row.
  std::vector<std::int64_t> node_time_ns;
  std::vector<trace::Row> node_row;
  std::vector<std::uint8_t> node_is_start;

  /// An edge never goes back in time. Its weight is 0 or the time between its nodes.
  std::vector<Node> edge_from;
  std::vector<Node> edge_to;
  std::vector<std::int64_t> edge_weight_ns;
  std::vector<EdgeType> edge_type;
  /// The event that the edge's time belongs to, kNoRow where it is nobody's: of an edge from a start it is
  /// that of the start, from end to end that of the destination, from end to start on the host the caller of
  /// both, on the device the source.
  std::vector<trace::Row> edge_row;

  /// The part of the trace that was looked at, from the first start to the last end of its events.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  /// Edges that were left out because they would go back in time: the clocks of host and device are apart, or
  /// events of one thread overlap half.
  std::size_t backward = 0;
  std::vector<std::string> notes;

  std::size_t nodes() const noexcept { return node_row.size(); }
  std::size_t edges() const noexcept { return edge_from.size(); }
};

/// Host: the calls of each thread one after the other, callers around what they call (a thread that only runs
/// autograd's part counts as part of the one that runs forward), and the runtime's lock between threads.
/// Device: the work itself, delays of launches and between pieces of work, waits for streams, events and the
/// whole device. Waits need the profiler's synchronisation events, waits for events its `wait_on_...`
/// arguments.
CriticalPathGraph critical_path_graph(const trace::Trace& trace, const CriticalPathOptions& options = {});

}  // namespace headrace::analysis::device
