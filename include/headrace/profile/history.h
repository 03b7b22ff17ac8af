// The history of a segment as plain data, from which timelines are drawn.
//
//     profile::SegmentImage image;
//     image.include_history();
//     image.read_file(path);
//     const profile::History history = profile::read_history(image);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/metrics/worker_cell.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// All times are nanoseconds on the run's own clock (CLOCK_MONOTONIC of its machine); `TimeAnchor`s lay it
/// over the wall clock. What is long ago is there more coarsely: see `StateSlice::busy`,
/// `GetNextCall::merged`.

struct TimeAnchor {
  std::int64_t monotonic_ns = 0;
  std::int64_t realtime_ns = 0;
};

struct HistoryOperator {
  std::string name;
  std::uint32_t flags = 0;  ///< OperatorFlag
  int loader = -1;
  std::uint32_t stage = 0;
};

/// A worker was in one state, or several that followed each other too fast to be recorded separately.
struct StateSlice {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  int op = -1;  ///< busy in this operator, index into History::operators; -1: in `state`
  metrics::WorkerState state = metrics::WorkerState::idle;
  /// How to read it: 1 in an operator, 0 in a state; in between it is a mixture in which `op` or `state` took
  /// longest and the worker was busy that share of the time.
  double busy = 0;

  bool mixed() const noexcept { return op >= 0 ? busy < 1 : busy > 0; }
};

/// The states of one worker, one after the other. Workers of a loader that its epochs start anew are one.
struct WorkerStates {
  int loader = -1;  ///< whose worker process it is; -1: a thread of its own
  int number = -1;  ///< of the worker there
  int pid = 0;
  int tid = 0;
  std::vector<StateSlice> slices;
};

struct LevelSample {
  std::int64_t at_ns = 0;
  double level = 0;  ///< from then on; the mean where it changed too fast
};

struct QueueLevels {
  std::string name;
  std::int64_t capacity = 0;  ///< 0: unbounded
  int loader = -1;
  std::vector<LevelSample> samples;
};

/// A GetNext that brought a batch.
struct GetNextCall {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t batch = 0;  ///< how many batches the loader had yielded before
  bool ready = false;       ///< the batch was there at the call
  bool merged = false;      ///< several calls that followed each other; of the time, `share` was waiting
  double share = 1;
};

/// A batch was being made.
struct BatchMaking {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  ///< from then on it was ready
  std::uint64_t batch = 0;
  int worker = -1;
};

struct LoopHistory {
  std::string loader;
  std::vector<GetNextCall> calls;
  std::vector<std::int64_t> ends_ns;  ///< the loop was over
  std::vector<BatchMaking> batches;
  std::uint64_t batches_left_out = 0;
};

struct AnnotatedRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t number = 0;  ///< running number of the thread's ranges of that name
  std::string name;
};

/// Ranges that the program named, of one thread.
struct ThreadAnnotations {
  int pid = 0;
  int tid = 0;
  std::vector<AnnotatedRange> ranges;
  std::uint64_t left_out = 0;  ///< too short and too many to be kept
};

struct History {
  int rank = 0;
  int pid = 0;
  std::int64_t opened_ns = 0;
  std::int64_t until_ns = 0;  ///< now, or the last sign of life
  bool running = false;
  std::vector<TimeAnchor> anchors;         ///< ascending; never empty
  std::vector<HistoryOperator> operators;  ///< by their number in the segment
  std::vector<WorkerStates> workers;
  std::vector<QueueLevels> queues;
  std::vector<LoopHistory> loops;
  std::vector<ThreadAnnotations> annotations;
};

/// The history in an image that was read with it. Never throws for what the image holds: what cannot be is
/// left out.
History read_history(const SegmentImage& image);
/// That of a segment file. Throws SegmentError.
History read_history(const std::string& path);

}  // namespace headrace::profile
