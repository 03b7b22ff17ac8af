// The ranks of a job against each other: where their steps' time went, and how they communicated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/device/column_groups.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// The values of `StepTimeColumns`; NaN if unknown.
using StepTimes = std::array<double, StepTimeColumns::kCount>;
/// Places in it.
inline constexpr std::size_t kComputingPart = 0;
inline constexpr std::size_t kExposedPart = 1;
inline constexpr std::size_t kFreePart = 4;

/// One rank's step, in seconds.
struct ClusterStep {
  std::string step;
  std::int64_t rank = 0;
  StepTimes parts{};
};

/// The figures of all ranks. Plain data.
struct ClusterData {
  std::vector<ClusterStep> steps;
  /// Ranks of each stage of the pipeline, ascending; one stage if there is no pipeline.
  std::vector<std::vector<std::int64_t>> stages;
  /// The ranks of a group are those that have its operations.
  trace::ascend::Communication communication;
  std::vector<std::string> notes;
};

/// The ranks' own files: steps of their traces, else of `step_trace_time`; communication of their JSON or
/// database. Stages: ranks that send to and receive from each other are one pipeline; ranks of different
/// pipelines that share a collective, but never two of one pipeline, are one stage. A file that cannot be
/// read is in `notes`.
ClusterData cluster_of(std::span<const trace::Trace> traces,
                       std::span<const trace::ascend::ProfileFolder> profiles);

/// True if the folder, or its `cluster_analysis_output`, has a summary of a job that the vendor's tool wrote.
bool has_cluster_summary(const std::string& folder);
/// Such a summary: `cluster_step_trace_time.csv`, `cluster_communication.json`,
/// `cluster_communication_matrix.json`; without these, `cluster_analysis.db`. FormatError if none can
/// be read. `notes` names the source.
ClusterData read_cluster_summary(const std::string& folder);

/// Adds the steps of ranks and stages of the table ClusterStepTraceTime of a `cluster_analysis.db`, and its
/// tables about communication. A table that is missing is noted. FormatError for a file that is no such
/// database.
void read_cluster_database(trace::Database& database, ClusterData& data);

using ClusterStepTimeColumns = ColumnList<Text<"step">, Text<"type", "rank or stage.">,
                                          Text<"index", "3, or (0, 1) of a stage.">, StepTimeColumns>;
using ClusterGapsColumns =
    ColumnList<Text<"quantity">, Text<"unit">, Number<"lowest">, Integer<"lowest_rank">, Number<"highest">,
               Integer<"highest_rank">, Number<"mean">, Number<"gap">,
               Number<"gap_share", "Of the mean; of times, of the mean of computing + exposed + free.">,
               Integer<"slow", "1: the gap is above 5 %.">,
               Integer<"slow_rank", "The rank that makes the others wait; -1: none.">>;
using ClusterCommunicationColumns =
    ColumnList<OperationColumns, Text<"ranks", "Of the group, global.">, Number<"elapse_s">,
               Number<"transit_s">, Number<"wait_s">, Number<"synchronisation_s">, Number<"idle_s">>;
using ClusterMatrixColumns = ColumnList<Text<"step">, Integer<"source">, Integer<"target">, Text<"transport">,
                                        Number<"size_mb">, Number<"transit_s">, Number<"bandwidth_gbps">>;
using ClusterSlowRanksColumns =
    ColumnList<Integer<"rank">, Integer<"slow_operations", "In which it was the slow one.">,
               Integer<"operations">>;
using ClusterSlowLinksColumns =
    ColumnList<Text<"operation">, Text<"step">, Text<"kind">, Number<"size_mb">, Text<"ranks">,
               Number<"transfer_s", "Of the fastest rank, which waited for no other.">,
               Number<"mean_s", "Of operations of the same kind, size and group.">,
               Number<"deviations", "Standard deviations from the mean.">>;

struct ClusterTables {
  /// A stage has the largest value of its ranks in each column.
  Table step_time;
  /// The quantities of the steps (sums over steps) and of the links (SDMA, RDMA in GB/s: sum of sizes by sum
  /// of times). The slow rank has the longest computing or idle time, the least exposed communication, or the
  /// lowest bandwidth.
  Table gaps;
  /// The rows "Total Op Info" are sums of the others by group and rank.
  Table communication;
  /// Between global ranks, of the sums of all operations.
  Table matrix;
  /// Votes. Among the ranks of one operation the abnormally short one is the slow one, because the others
  /// wait for it: one-sided Dixon test at 99.5 % for 3 to 100 ranks, three standard deviations above; of two
  /// ranks the shorter one if it is shorter by more than 5 %.
  Table slow_ranks;
  /// Operations of one kind, size and group whose fastest rank is three standard deviations off; the 15
  /// farthest off.
  Table slow_links;
};

ClusterTables cluster_tables(const ClusterData& data);

}  // namespace headrace::analysis::device
