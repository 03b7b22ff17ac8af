// The ranks of a job against each other: where their steps' time went, and how they communicated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/analysis/table.h"
#include "headrace/trace/ascend/communication.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// One rank's step, in seconds.
struct ClusterStep {
  std::string step;
  std::int64_t rank = 0;
  /// As `ClusterData::kColumns`; NaN if unknown.
  std::vector<double> parts;
};

/// An operation of one rank; the ranks of its group are those that have it.
struct ClusterOperation {
  std::int64_t rank = 0;
  trace::ascend::CommunicationTime time;
};
struct ClusterBandwidth {
  std::int64_t rank = 0;
  trace::ascend::CommunicationBandwidth bandwidth;
};
struct ClusterLink {
  std::int64_t rank = 0;
  trace::ascend::CommunicationLink link;
};

/// What is known of all ranks. Plain data.
struct ClusterData {
  static constexpr const char* kColumns[] = {"computing_s",  "communication_not_overlapped_s",
                                             "overlapped_s", "communication_s",
                                             "free_s",       "stage_s",
                                             "bubble_s",     "not_overlapped_exclude_receive_s",
                                             "preparing_s"};

  std::vector<ClusterStep> steps;
  /// Ranks of each stage of the pipeline, ascending; one stage if there is no pipeline.
  std::vector<std::vector<std::int64_t>> stages;
  std::vector<ClusterOperation> operations;
  std::vector<ClusterBandwidth> bandwidths;
  std::vector<ClusterLink> links;
  std::vector<std::string> notes;
};

/// Of the ranks' own files: steps of their traces, else of `step_trace_time`; communication of their JSON or
/// database. Stages: ranks that send to and receive from each other are one pipeline; ranks of different
/// pipelines that share a collective, but never two of one pipeline, are one stage. A file that cannot be read
/// is in `notes`.
ClusterData cluster_of(std::span<const trace::Trace> traces,
                       std::span<const trace::ascend::ProfileFolder> profiles);

/// True if the folder, or its `cluster_analysis_output`, has a summary of a job that the vendor's tool wrote.
bool has_cluster_summary(const std::string& folder);
/// Of such a summary: `cluster_step_trace_time.csv`, `cluster_communication.json`,
/// `cluster_communication_matrix.json`; without these, `cluster_analysis.db`. FormatError if none can
/// be read. `notes` names the source.
ClusterData read_cluster_summary(const std::string& folder);

struct ClusterTables {
  /// step type ("rank", "stage") index ("3", "(0, 1)") and `ClusterData::kColumns`; a stage has the largest
  /// value of its ranks in each column.
  Table step_time;
  /// quantity unit lowest lowest_rank highest highest_rank mean gap gap_share slow slow_rank: the quantities
  /// of the steps (sums over steps; gap_share is of the mean of computing + exposed + free) and of the links
  /// (SDMA, RDMA in GB/s: sum of sizes by sum of times; gap_share is of the mean). `slow` is 1 above 5 %, and
  /// `slow_rank` is who makes the others wait: the longest computing or idle time, the least exposed
  /// communication, the lowest bandwidth.
  Table gaps;
  /// rank step type operation group ranks elapse_s transit_s wait_s synchronisation_s idle_s: ranks of the
  /// group are global. The rows "Total Op Info" are sums of the others by group and rank.
  Table communication;
  /// step source target transport size_mb transit_s bandwidth_gbps: between global ranks, of the sums of all
  /// operations.
  Table matrix;
  /// rank slow_operations operations: votes. Among the ranks of one operation the abnormally short one is the
  /// slow one, because the others wait for it: one-sided Dixon test at 99.5 % for 3 to 100 ranks, three
  /// standard deviations above; of two ranks the shorter one if it is shorter by more than 5 %.
  Table slow_ranks;
  /// operation step kind size_mb ranks transfer_s mean_s deviations: operations of one kind, size and group
  /// whose fastest rank (which waited for nobody) is three standard deviations off; the 15 farthest off.
  Table slow_links;
};

ClusterTables cluster_tables(const ClusterData& data);

}  // namespace headrace::analysis::device
