// How fast each group of ranks communicates, from the records of its collectives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/scope.h"
#include "headrace/analysis/rows.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

inline constexpr const char* kAllReduce = "all_reduce";
inline constexpr const char* kAllGather = "all_gather";
inline constexpr const char* kReduceScatter = "reduce_scatter";
inline constexpr const char* kSendReceive = "send_receive";

/// One name for the names that a collective has in events and kernels: "all_reduce" for "allreduce_coalesced"
/// and "ncclDevKernel_AllReduce_Sum_f32_RING_LL". A name of none of these is given back.
std::string collective_form(std::string_view recorded);

/// The calls of one collective in one group with one size, on one rank.
struct CollectiveCalls {
  std::string collective;           ///< "all_reduce", "send_receive", ...; as recorded if it is another
  std::string group;                ///< name of the process group
  std::vector<std::int64_t> ranks;  ///< of the group; empty if the trace does not say
  std::int64_t members = trace::kAbsent;
  /// Of the whole message: the larger of what goes in and what comes out. NaN for an unknown type.
  double bytes = 0;
  std::int64_t calls = 0;
  double total_s = 0;
  /// What the tenth part of the calls stays below: a kernel runs from when its rank arrives until the transfer
  /// ends, so its shortest calls are those that waited for no other rank.
  double transfer_s = 0;
};

/// Kernels of kind communication with the arguments that Kineto writes beside them. Those that took most time
/// first. `without`: collectives without a group or a size.
std::vector<CollectiveCalls> collective_calls(const trace::Trace& trace, const Scope& scope,
                                              std::int64_t* without = nullptr);

/// Bytes over the busiest link per byte of the message, for `members` ranks: 2 (n - 1) / n of an all-reduce,
/// (n - 1) / n of an all-gather, a reduce-scatter and an all-to-all, else 1. Times bytes, by the transfer's
/// time, this is the "bus bandwidth" of nccl-tests (doc/PERFORMANCE.md), which can be compared between groups
/// of different sizes.
double bus_factor(const std::string& collective, std::int64_t members) noexcept;

using CollectivesColumns = ColumnList<
    Integer<"rank">, Text<"collective">, Text<"group">,
    Text<"ranks", "Of the group; empty: the trace does not say.">, Integer<"members">,
    Number<"bytes", "The larger of input and output.">, Integer<"calls">, Number<"total_s">,
    Number<"transfer_s", "What the tenth part of the calls stays below: these waited for no other rank.">,
    Number<"bandwidth_gbps", "Bus bandwidth of nccl-tests.">>;

/// One row per rank, collective, group and size. How to read it: a group whose bandwidth is far below that of others of its size and form has a slow link; close to that of others
/// with a long `total_s`, its ranks wait for each other instead.
Table collectives(std::span<const trace::Trace> traces, const Scope& scope = {});

}  // namespace headrace::analysis::device
