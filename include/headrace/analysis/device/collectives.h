// How fast each group of ranks communicates, and which rank the others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/analysis/device/device_work.h"
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
  /// Size of the message: the larger of what goes in and what comes out. NaN for an unknown type.
  double bytes = 0;
  std::int64_t calls = 0;
  double total_s = 0;
  /// The 10th percentile of the calls: a kernel runs from when its rank arrives until the
  /// transfer ends, so its shortest calls are those that waited for no other rank.
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

/// One row per rank, collective, group and size. How to read it: a group whose bandwidth is far below that of
/// others of its size and form has a slow link; close to that of others with a long `total_s`, its ranks wait
/// for each other instead.
Table collectives(std::span<const trace::Trace> traces, const Scope& scope = {});

struct StragglersOptions {
  /// Only these steps; empty: all that every rank has and that are not cut off.
  std::vector<std::int64_t> steps;
  /// How many ranks to name at most.
  std::size_t candidates = 2;
};

using StragglersColumns = ColumnList<
    Integer<"rank">, Integer<"candidate", "1: a straggler.">,
    Integer<"late_steps", "Steps in which it was among the last to start the collective.">, Integer<"steps">,
    Number<"mean_late_s", "Behind the first rank, by the machines' clocks.">,
    Number<"mean_wait_s",
           "How much longer its kernel ran than the shortest; close to 0, the others waited for it.">>;

/// One row per rank, the one that was late in most steps first.
///
/// A collective cannot begin to move data before the last rank has come, so the last to start it holds the
/// others up. Looked at is one collective: of all kernels of kind communication that took at least 1 % of a
/// step, by name and stream and the last of each step, the one whose duration differs most between ranks.
/// `late_steps`: in how many of its `steps` this rank was one of the `candidates` that started it last.
/// `mean_late_s`: how much later than the first rank it started, on average; it compares the clocks of the
/// ranks' machines and is as good as these. `mean_wait_s`: how much longer its kernel ran than the shortest
/// of the same step, which needs no common clock. How to read it: a rank with `late_steps` close to `steps`
/// and a wait close to 0 is the straggler.
///
/// `candidate` is 1 for stragglers: the largest group of first rows, of at most `candidates` and half of the
/// ranks, each of which stands out from the rows behind the group. A rank stands out when its `mean_late_s`
/// exceeds the greatest of the others by more than
///
///     the others' greatest `mean_late_s` less their smallest, and
///     the standard deviation, over the steps, of its start less the mean start of the others (0 for one
///     step)
///
/// If none does, or all are equally late, `candidate` is 0 throughout and a note says so. Two ranks
/// in a single step show neither spread, so none stands out.
///
/// Needs steps, and traces of two ranks or more.
Table stragglers(std::span<const trace::Trace> traces, const StragglersOptions& options = {});

}  // namespace headrace::analysis::device
