// Advice from device traces and the profiler's own tables: what should be changed, and every threshold with its
// reason.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/analysis/rows.h"
#include "headrace/trace/ascend/profile_folder.h"
#include "headrace/trace/trace.h"

namespace headrace::analysis::device {

/// Severities of advice, the most urgent first.
inline constexpr const char* kSeverities[] = {"high", "medium", "low", "none", "not checked"};

using AdviceColumns = ColumnList<
    Text<"rule">,
    Text<"severity", "high, medium, low: change something; none: nothing found; not checked: says why not.">,
    Text<"says">, Text<"figures", "The numbers behind it, with units and what they are of.">,
    Text<"cure", "Empty: nothing was found.">,
    Text<"source", "The rows or files that were looked at, and the threshold.">>;

/// One row or more per rule, the most urgent first, then in the rules' order.
///
/// The first rules work on any trace; the others need what the Ascend profiler records. Thresholds and their
/// reasons are below. `profiles` may be empty: then rules that need a table of the profiler are
/// not checked.
Table advice(std::span<const trace::Trace> traces,
             std::span<const trace::ascend::ProfileFolder> profiles = {});

/// Shares are of 1. "Ascend": the value of the Ascend advisor's rule, so that both say the same.
struct AdviceThresholds {
  // --- any trace ---
  /// Free share of a step (stage + bubble). Below it launches are quick enough. Ascend's guide; its code never
  /// checks it.
  double free_share = 0.10;
  /// From twice that on, the device's idle time is the first thing to change.
  double high_free_share = 0.20;
  /// Share of a step in exposed communication: the TensorBoard plugin's value.
  double exposed_communication_share = 0.10;
  /// Share of a step in data loading: the TensorBoard plugin's value. A share, because 10 ms are much of a step
  /// of 50 ms and nothing of one of 5 s.
  double data_loading_share = 0.05;
  /// Share of a step before its first device work: the wait for the input and the first launches.
  double preparing_share = 0.10;
  /// Share of step time idle because the device's next work was not launched yet.
  double launch_share = 0.10;
  /// Share of step time idle behind calls that wait for the device.
  double synchronisation_share = 0.10;
  /// Share of step time in copies while nothing computes.
  double copy_share = 0.10;
  /// The host is inside calls that take and free memory for this share of the recorded time.
  double memory_call_share = 0.05;
  /// A call of the runtime that is no wait: launches take 5 to 20 us, so one of a millisecond did something
  /// else.
  std::int64_t long_call_ns = 1'000'000;
  /// The device is idle in calls that cost much once for this share of the recorded time.
  double one_off_share = 0.10;
  /// One collection of Python's garbage. Ascend.
  std::int64_t collection_ns = 1'000'000;
  /// If collections are not recorded: a pause of the device that is this long. Ascend.
  std::int64_t silent_pause_ns = 200'000'000;
  /// In such a pause the host called the runtime for less than this share of it. Ascend.
  double silent_call_share = 0.01;
  /// And less often than this many times a microsecond. Ascend.
  double silent_calls_per_us = 1e-4;

  // --- the host of an Ascend device ---
  /// Operators compiled while the step runs. Ascend.
  std::int64_t compiled_operators = 20;
  /// Share of launches that a wait for the stream follows directly. Ascend.
  double synchronised_launch_share = 0.5;
  /// Calls that take and give back device memory, in all. Ascend.
  std::int64_t memory_calls_ns = 10'000'000;
  /// Calls of SyncBatchNorm. Ascend.
  std::int64_t batch_norm_calls = 20;

  // --- kernels ---
  /// The longest operator on the device's CPU, and the shortest that is judged by its pipelines. Ascend.
  double long_kernel_s = 20e-6;
  /// A pipeline that is busy for less of a kernel than this is not what bounds it. Ascend.
  double pipeline_ratio = 0.8;
  /// A sequence of kernels that is worth fusing: repetitions, and its share of the step. Ascend.
  std::int64_t sequence_repetitions = 5;
  double sequence_share = 0.01;
  /// The longest sequence. Ascend.
  std::int64_t sequence_length = 10;
  /// Kernels' share of a sequence's time from first start to last end; below it the host is late.
  /// Ascend.
  double sequence_busy_share = 0.4;
  /// Share by which the cores' mean frequency is below the highest. Ascend.
  double frequency_drop = 0.05;
  /// A matrix multiplication is judged by its pipelines from so many bytes of inputs on. Ascend.
  double large_cube_bytes = 100e6;
  /// A pipeline that is busy for so much of such a multiplication bounds it: the multiplier, reading memory.
  /// Ascend.
  double cube_mac_ratio = 0.8;
  double cube_mte2_ratio = 0.95;
  /// Bounds of flash attention: reading memory, writing results, vectors. Ascend.
  double attention_mte2_ratio = 0.8;
  double attention_fixpipe_ratio = 0.75;
  double attention_vector_ratio = 0.75;
  /// Types of vector operators that are judged: of the computing time, or of all. Ascend.
  double vector_share = 0.01;
  double vector_s = 1;
  /// A vector kernel is bound where its pipelines together, or one of them, are busy for so much of it.
  /// Ascend.
  double vector_total_ratio = 0.9;
  double vector_ratio = 0.7;
  /// Innermost axes that fill the multiplier, and those of attention's heads and sequences, are multiples.
  /// Ascend.
  std::int64_t cube_axis = 256;
  std::int64_t attention_axis = 128;

  // --- communication ---
  /// Transfers below these use the link badly, 10^6 bytes. Ascend.
  double small_sdma_mb = 16;
  double small_rdma_mb = 1;
  /// Share of operations with small transfers. Ascend.
  double small_packet_share = 0.2;
  /// SDMA copies multiples of this fastest, bytes. Ascend.
  std::int64_t aligned_bytes = 512;
  /// Share of unaligned copies: from here on medium, from there on high. Ascend.
  double unaligned_share = 0.2;
  double mostly_unaligned_share = 0.7;
  /// SDMA's bandwidth beside a matrix multiplication, 80 % of its 18 GB/s. Ascend.
  double contended_gbps = 0.8 * 18;
  /// RDMA sends a lost packet again after about 4 s. Ascend.
  double retransmission_s = 4;

  // --- ranks ---
  /// Between the slowest and the fastest rank, of the mean step. Ascend.
  double rank_gap_share = 0.05;
  /// Between the slowest and the fastest rank's link, of the mean bandwidth. Ascend.
  double link_gap_share = 0.05;

  // --- environment ---
  /// ACLNN_CACHE_LIMIT below it compiles operators again. Ascend.
  std::int64_t aclnn_cache_limit = 10'000;
};

inline constexpr AdviceThresholds kAdviceThresholds{};

}  // namespace headrace::analysis::device
