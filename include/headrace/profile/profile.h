// What was recorded of one wrapped loader in one rank, as plain data.
//
// A Profile is everything a verdict may rest on: it is read from a live or dead segment (snapshot.h), or from
// a saved report (profile_json.h), and means the same either way. Times are seconds here, because this is the
// form that users, JSON and Python see; the recording side (metrics/) counts nanoseconds.
//
// A figure that the machine or the loader cannot give is empty (null in JSON), never zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/loader_model.h"

namespace headrace::profile {

/// Summary of a latency histogram. Quantiles are within 1/16 of the true value; mean and maximum are exact.
struct Latency {
  std::uint64_t count = 0;
  double mean_s = 0;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double max_s = 0;
};

/// Shares of the time an operator's workers were present; they sum to 1 (all 0 where nothing was recorded).
///
/// How to read it: busy near 1 is a worker that never rests; blocked_in near 1 waits for its input, look
/// upstream; blocked_out near 1 has nowhere to put its items, look downstream.
struct States {
  double busy = 0;
  double blocked_in = 0;
  double blocked_out = 0;
  double idle = 0;  ///< not started, finished or paused
};

/// One recorded item of a service-time sequence.
struct ServiceSample {
  std::uint64_t index = 0;  ///< the worker's own running number of the item
  double wall_s = 0;        ///< time in the body, nested operators and queue waits excluded
  double cpu_s = -1;        ///< CPU time of that; negative where it was not taken
};

/// The same operator, seen in one worker (thread or process).
struct WorkerProfile {
  std::string name;  ///< "pid/tid", or the loader's own number of the worker
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  bool alive = false;
  std::uint64_t items = 0;
  std::uint64_t failures = 0;
  double busy_s = 0;
  std::optional<double> cpu_s;             ///< estimated from sampled calls
  std::optional<double> run_queue_wait_s;  ///< time the thread was runnable and had no core
  States states;
  Latency service;
  std::vector<ServiceSample> sequence;    ///< newest last; a bounded run, in bursts where items are fast
  std::vector<ServiceSample> slowest;     ///< slowest first; a handful
  std::optional<std::int64_t> worker_id;  ///< the loader's own number of the worker process
  std::string shard;  ///< "2 of 4": its part of a stream that is split over the workers; else ""
};

/// A parameter of the framework that changes this operator or queue.
struct Knob {
  std::string parameter;  ///< as the user writes it: "decode.workers", "decoded.capacity"
  double value = 0;
  std::optional<double> min;
  std::optional<double> max;
  bool live = false;  ///< can be set while the loader runs
  Quantity sets = Quantity::none;
};

/// What an operator copied to a device, in the steady loop.
///
/// How to read it: bytes_per_s far below what the machine's bus can do is pageable memory (pinned_share near
/// 0) or many small copies; buffer_wait_s near the time that the operator was there means that the device's
/// buffers are held by what comes after the copy, not that the copy is slow.
struct Transfer {
  std::uint64_t copies = 0;  ///< batches
  std::uint64_t bytes = 0;
  std::optional<double> bytes_per_s;   ///< while copying; empty where no copy could be timed
  std::optional<double> pinned_share;  ///< of the bytes, from page-locked memory; empty where pinning means
                                       ///< nothing (the device is host memory)
  double copy_s = 0;         ///< of the copies themselves, also where the host did not wait for them
  double buffer_wait_s = 0;  ///< until a buffer of the device was free
};

/// A function's own part of an operator's time, without what it calls.
struct FunctionShare {
  std::string name;  ///< "Jpegs.decode (train.py:12)", "sqlite3.Cursor.execute"
  double share = 0;
};

struct OperatorProfile {
  std::string name;
  std::string kind;  ///< sampler, source, map, batch, generator, shuffle, filter, prefetch, transfer,
                     ///< handoff, pin_memory
  int workers = 1;   ///< the largest number that ran it at the same time
  std::uint64_t items = 0;
  double items_per_batch = 0;  ///< items of this operator for one batch at the sink
  double busy_s = 0;           ///< summed over workers, start-up excluded
  std::optional<double> cpu_s;
  double demand_s = 0;  ///< busy time per delivered batch / workers: the step time it could sustain alone
  Latency service;
  States states;
  std::uint64_t failures = 0;
  std::optional<double> run_queue_wait_s;
  int segment = -1;  ///< operators of one number share a thread; their demands add up. -1: none
  bool in_sink =
      false;  ///< runs in the training loop's own thread, inside GetNext (no overlap with the step)
  std::string executor;              ///< "thread" (of the sink's process), "process", or "" where unknown
  std::string fidelity;              ///< exact, counter, sampled, inclusive
  std::optional<Transfer> transfer;  ///< empty where it copies nothing to a device
  std::vector<Knob> knobs;
  std::vector<FunctionShare> functions;  ///< the largest; from a few batches of one worker; may be empty
  std::vector<WorkerProfile> per_worker;
};

struct QueueProfile {
  std::string name;
  std::string from;           ///< operator that puts ("" where unknown); several are joined by ", "
  std::string to;             ///< operator that gets, or "sink"
  std::int64_t capacity = 0;  ///< 0: unbounded
  std::string unit = "items";
  std::vector<double>
      occupancy;  ///< share of time at each level 0..capacity; sums to 1 (empty where no time passed)
  int levels_per_bin = 1;  ///< above 1 where a large capacity is counted in bins of that many levels
  double mean = 0;
  double empty_share = 0;
  double full_share = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  double put_wait_s = 0;
  double get_wait_s = 0;
  std::string fidelity;
  std::vector<Knob> knobs;
};

/// What the awaited batch was doing while the sink waited. The rows sum to the GetNext wait.
///
/// How to read it: `in_service`, it was being made in `op`; `waiting_for_worker`, its worker was still at an
/// earlier batch, mostly in `op`; `order`, a younger batch was ready while it was still in service at `op`;
/// `handoff`, it was finished and on its way to the training loop.
struct LedgerRow {
  std::string what;  ///< in_service, waiting_for_worker, transfer, order, handoff, unknown
  std::string op;    ///< JSON "operator": its name, or "" (null)
  double seconds = 0;
  double share = 0;  ///< of the GetNext wait
};

struct Stall {
  double at_s = 0;  ///< since the loop began, start-up excluded
  double wait_s = 0;
  std::uint64_t step = 0;
};

/// The figures of one operator or queue in one window, in the order of Profile::operators / queues.
struct WindowOperator {
  double busy_share = 0;  ///< of its workers' time
  double demand_s = 0;  ///< busy per batch delivered in this window / workers; 0 where no batch was delivered
  std::uint64_t items = 0;
};
struct WindowQueue {
  double mean = 0;
  double empty_share = 0;
  double full_share = 0;
};

struct WindowHost {
  std::optional<double> cpu_share;          ///< of the cores: this run's process trees
  std::optional<double> foreign_cpu_share;  ///< of the cores: everybody else, plus steal
  std::optional<double> throttled_share;    ///< of the window: CPU quota used up
};

struct Window {
  double start_s = 0;  ///< since the loop began, start-up and pauses between epochs excluded
  double end_s = 0;
  std::uint64_t steps = 0;
  double wait_s = 0;
  double starved_s = 0;
  double compute_s = 0;
  std::vector<WindowOperator> operators;
  std::vector<WindowQueue> queues;
  WindowHost host;
};

struct Startup {
  double first_batch_s = 0;  ///< from iter() to the first batch of the first epoch
  double worker_start_s =
      0;  ///< of that: until the first worker began its first item (0 where there is none)
  double later_epochs_s = 0;  ///< the same wait, summed over the later epochs
};

struct StepSample {
  double wait_s = 0;
  double compute_s = 0;
  // Parts of the compute; empty where nobody told (MarkedSteps).
  std::optional<double> before_forward_s = std::nullopt;  ///< from the batch to the beginning of forward
  std::optional<double> tail_s = std::nullopt;            ///< from the end of backward to the next GetNext
};

/// Steps cut where hooks on the model, or a `with hr.step()`, told that forward began and backward ended.
/// analysis/step_trace.h defines the parts. Times are the host's, means over `steps`.
struct MarkedSteps {
  std::uint64_t steps = 0;       ///< in which the beginning of forward was told
  std::uint64_t of_steps = 0;    ///< of so many with a steady wait: first ones of epochs are none
  std::uint64_t tail_steps = 0;  ///< of `steps`: the end of backward was told too
  double iteration_gap_s = 0;
  double forward_backward_s = 0;  ///< with the tail of the steps that are no tail_steps
  double tail_s = 0;              ///< those count as 0
};

struct SinkProfile {
  std::uint64_t steps = 0;                ///< all batches yielded, first ones included
  double step_s = 0;                      ///< mean of a steady step: GetNext wait + compute
  double compute_s = 0;                   ///< mean time between two GetNext calls
  std::optional<double> compute_cpu_s;    ///< mean CPU time of that in the sink's own thread
  std::optional<double> quiet_compute_s;  ///< mean compute of steps during which no worker was busy
  std::uint64_t quiet_steps = 0;
  std::optional<std::int64_t> batch_bytes;  ///< memory of a batch: the largest of those looked at
  Latency getnext_wait;                     ///< steady calls; first batches of epochs are in Startup
  double wait_share = 0;                    ///< GetNext wait / elapsed, 0 to 1
  double worker_start_wait_s =
      0;                       ///< of the starved time: for the first batch of a worker, which had to start
  double starved_share = 0;    ///< part of wait_share until the awaited batch was handed over
  double handoff_floor_s = 0;  ///< mean wait on calls whose batch was ready
  double ready_share = 0;      ///< calls that found their batch ready / calls
  std::vector<Stall> longest_waits;                  ///< longest first, steady part
  std::vector<StepSample> sequence;                  ///< newest last, bounded
  std::optional<MarkedSteps> marked = std::nullopt;  ///< empty where nobody told
};

struct Host {
  int cores = 0;                                   ///< that affinity and cgroup quota allow (rounded up)
  std::optional<double> cpu_share;                 ///< this run's process trees, of the cores, 0 to 1
  std::optional<double> process_cpu_cores;         ///< the sink's own process alone, in cores
  std::optional<double> foreign_cpu_share;         ///< others plus steal, of the cores
  std::optional<double> foreign_contention_share;  ///< of foreign_cpu_share: what exceeds the free cores
  std::optional<double> throttled_share;
  std::optional<double> run_queue_wait_share;  ///< of the workers' time: runnable, without a core
  std::optional<double> io_pressure_share;
  std::optional<double> gil_share;     ///< share of probes that found the interpreter lock taken for > 1 ms
  std::optional<std::int64_t> memory;  ///< bytes, resident, of the run's process tree
};

/// How the framework's loader is set, as its user would write it: {"workers", "4"}, {"ordered", "True"}.
struct Setting {
  std::string parameter;
  std::string value;
};

/// What passing batches from worker processes to the training loop costs. Means per batch, except the counts.
///
/// How to read it: pickle_s far above pickle_cpu_s is a worker that is too busy to send; large message_bytes
/// are arrays that travel through a pipe (tensors go through shared memory, only their descriptors travel);
/// receive_cpu_s is what the training loop itself pays for every batch, however many workers there are.
struct Handoff {
  std::uint64_t batches = 0;         ///< received
  double message_bytes = 0;          ///< of the pickled message
  double tensors = 0;                ///< passed through shared memory
  double pickle_s = 0;               ///< in the worker's sending thread
  double pickle_cpu_s = 0;           ///< CPU time of that
  double send_s = 0;                 ///< writing the message into the pipe
  double receive_s = 0;              ///< in the sink's process, from message to batch
  double receive_cpu_s = 0;          ///< CPU time of that
  std::uint64_t unused_batches = 0;  ///< prefetched and never used (the loop was left early)
};

/// What passing a batch from a worker process would cost a loader that has none: batches were pickled as a
/// sample, tensors and arrays only counted.
struct HandoffEstimate {
  double message_bytes =
      0;               ///< through a pipe: the pickled objects and the arrays; a lower bound from 1 MB on
  double tensors = 0;  ///< through shared memory
  double pickle_cpu_s = 0;  ///< CPU time for pickling, without tensors and arrays
};

/// The same loader in another rank of the run, in a few figures.
struct RankFigures {
  int rank = 0;
  std::uint64_t steps = 0;  ///< steady ones
  double step_s = 0;
  double compute_s = 0;
  double wait_share = 0;
  double starved_share = 0;
  double demand_s = 0;  ///< of the operator with the largest
  std::string op;       ///< JSON "operator": its name
};

/// A part of the time in which a device computed nothing.
struct DeviceIdleCause {
  std::string cause;  ///< input, launch, communication, copy, kernel_gap or unknown: analysis/device_idle
  double idle_s = 0;
};

/// A step of a device trace, cut on the device's clock (analysis/device/step_points.h).
struct DeviceStep {
  std::int64_t step = 0;  ///< the profiler's number
  // Empty where the trace does not tell the point; the part to the left, or the total, contains it.
  std::optional<double> iteration_gap_s;
  std::optional<double> forward_backward_s;
  std::optional<double> tail_s;
  double total_s = 0;
  double communication_s = 0;          ///< in which a collective ran
  double communication_overlap_s = 0;  ///< of that: under computation
};

/// The steps of a device trace. Means are over `steps`.
struct DeviceSteps {
  std::uint64_t steps = 0;       ///< in which the beginning of forward was found
  std::uint64_t of_steps = 0;    ///< whole steps of the trace
  std::uint64_t tail_steps = 0;  ///< of `steps`: the end of backward was found too
  double iteration_gap_s = 0;
  double forward_backward_s = 0;  ///< with the tail of the steps that are no tail_steps
  double tail_s = 0;              ///< those count as 0
  double communication_s = 0;
  double communication_overlap_s = 0;
  std::string fp_point;              ///< what the user named the points by; empty: they were found
  std::string bp_point;              ///< the same
  std::vector<DeviceStep> sequence;  ///< newest last, bounded
};

/// What a device did while the loop ran, from a trace of it that was laid beside the run.
struct DeviceProfile {
  double window_s = 0;  ///< of the trace's steps, or from the first to the last work on the device
  double idle_s = 0;    ///< of that: nothing computed
  std::vector<DeviceIdleCause> causes;  ///< the largest first; they sum to idle_s
  std::string waits_from;  ///< "run": the recorded GetNext waits; "trace": its own __next__ ranges
  std::optional<double> clock_error_s;  ///< how far the run's clock and the trace's may be apart
  std::optional<std::int64_t> rank;     ///< of the trace; empty where its file does not say
  std::optional<DeviceSteps> steps;     ///< empty where the trace has no whole step
  std::vector<std::string> step_notes;  ///< what the trace's steps lack, a sentence each
};

struct Profile {
  std::string loader;
  std::vector<Setting> settings;     ///< the model's parameters as text, and facts; JSON: an object
  std::optional<LoaderModel> model;  ///< empty where the loader is none of a framework that is known
  int rank = 0;
  double elapsed_s = 0;  ///< steady time covered: GetNext waits + computes
  std::uint64_t epochs = 0;
  Startup startup;
  SinkProfile sink;
  std::vector<OperatorProfile> operators;  ///< in the order of the data flow, source first
  std::vector<QueueProfile> queues;
  std::vector<LedgerRow> stall_ledger;
  std::optional<Handoff> handoff;                   ///< empty where batches do not pass between processes
  std::optional<HandoffEstimate> handoff_estimate;  ///< only of a loader without workers that was sampled
  std::vector<Window> windows;
  std::vector<RankFigures> ranks;  ///< the other ones of a run folder, by number; empty where it was not read
  Host host;
  std::optional<DeviceProfile> device;  ///< empty where no trace was laid beside
  bool finished = false;                ///< the loop has ended or its process is gone
  std::vector<std::string> notes;       ///< what could not be recorded, in plain words; shown in the report
};

}  // namespace headrace::profile
