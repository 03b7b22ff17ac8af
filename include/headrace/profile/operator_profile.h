// An operator of a profile, and its workers. Declared as figure.h says; part of profile.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/profile/figure.h"
#include "headrace/profile/latency.h"
#include "headrace/profile/loader_model.h"
#include "headrace/profile/remote_profile.h"
#include "headrace/profile/word.h"

namespace headrace::profile {

enum class OperatorKind : std::uint8_t {
  sampler,
  source,
  map,
  batch,
  generator,
  shuffle,
  filter,
  prefetch,
  transfer,
  handoff,
  pin_memory,
};
/// Place in which its body runs.
enum class Executor : std::uint8_t { thread, process };
/// How its figures were taken.
enum class Fidelity : std::uint8_t { exact, sampled, counter, inclusive };

constexpr std::array<std::string_view, 11> names_of(OperatorKind) noexcept {
  return {"sampler", "source",   "map",      "batch",   "generator", "shuffle",
          "filter",  "prefetch", "transfer", "handoff", "pin_memory"};
}
constexpr std::array<std::string_view, 2> names_of(Executor) noexcept { return {"thread", "process"}; }
constexpr std::array<std::string_view, 4> names_of(Fidelity) noexcept {
  return {"exact", "sampled", "counter", "inclusive"};
}

struct States {
  double busy = 0;
  double blocked_in = 0;
  double blocked_out = 0;
  double idle = 0;
};

constexpr About about(Of<States>) {
  return {"States",
          "Shares of the time that an operator's workers were present; they sum to 1 (all 0 where nothing "
          "was recorded)."};
}
template <class Visit>
constexpr void figures_of(Of<States>, Visit&& figure) {
  figure("busy", &States::busy, {"In the operator's body. Near 1: the workers never rest.", &kShare});
  figure("blocked_in", &States::blocked_in, {"Waiting for input. Near 1: look upstream.", &kShare});
  figure("blocked_out", &States::blocked_out,
         {"Waiting for room in the output. Near 1: look downstream.", &kShare});
  figure("idle", &States::idle, {"Not started, finished or paused.", &kShare});
}

struct ServiceSample {
  std::uint64_t index = 0;
  double wall_s = 0;
  double cpu_s = -1;  ///< negative: not taken
};

constexpr About about(Of<ServiceSample>) { return {"ServiceSample", "One recorded item of an operator."}; }
template <class Visit>
constexpr void figures_of(Of<ServiceSample>, Visit&& figure) {
  figure("index", &ServiceSample::index,
         {"Number of the item: in `slowest` the dataset's own where it has one, else the worker's running "
          "number.",
          &kName});
  figure("wall_s", &ServiceSample::wall_s, {"Time in the body, without nested operators and queue waits."});
  figure("cpu_s", &ServiceSample::cpu_s,
         {"CPU time of that; null where it was not read.", nullptr, Null::when_unset});
}

struct WorkerProfile {
  std::string name;
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  bool alive = false;
  std::uint64_t items = 0;
  std::uint64_t failures = 0;
  double busy_s = 0;
  std::optional<double> cpu_s;
  std::optional<double> run_queue_wait_s;
  States states;
  Latency service;
  std::vector<ServiceSample> sequence;
  std::vector<ServiceSample> slowest;
  std::optional<std::int64_t> worker_id;
  std::string shard;
  std::optional<std::uint64_t> read_bytes;
  std::optional<std::uint64_t> read_calls;
  std::optional<std::uint64_t> storage_bytes = std::nullopt;
  std::optional<std::uint64_t> major_faults = std::nullopt;
  std::optional<double> process_cpu_s = std::nullopt;
  std::optional<std::int64_t> process_threads = std::nullopt;
  std::optional<std::int64_t> allowed_cores = std::nullopt;
  double gc_s = 0;
  double out_of_data_s = 0;
  std::optional<double> current_item_s = std::nullopt;
  std::string waits_in = {};
};

constexpr About about(Of<WorkerProfile>) {
  return {"WorkerProfile", "An operator in one of its workers (a thread or a process)."};
}
template <class Visit>
constexpr void figures_of(Of<WorkerProfile>, Visit&& figure) {
  figure("name", &WorkerProfile::name, {"\"pid/tid\", or the loader's own number of the worker."});
  figure("pid", &WorkerProfile::pid, {"Process of the worker.", &kName});
  figure("tid", &WorkerProfile::tid, {"Thread of the worker.", &kName});
  figure("alive", &WorkerProfile::alive, {"Whether the worker still ran when the figures were read."});
  figure("items", &WorkerProfile::items, {.says = "Items that this worker made.", .fold = Fold::sum});
  figure("failures", &WorkerProfile::failures, {.says = "Calls that raised.", .fold = Fold::sum});
  figure("busy_s", &WorkerProfile::busy_s, {.says = "Time in the operator's body.", .fold = Fold::sum});
  figure("cpu_s", &WorkerProfile::cpu_s,
         {.says = "CPU time of that, estimated from sampled calls. Near `busy_s` it computes, near 0 it "
                  "sleeps or reads.",
          .fold = Fold::sum});
  figure("run_queue_wait_s", &WorkerProfile::run_queue_wait_s,
         {.says = "Time for which the thread was ready to run and had no core, whatever it ran.",
          .fold = Fold::sum});
  figure("states", &WorkerProfile::states, {"What the worker did, as shares of its time."});
  figure("service", &WorkerProfile::service, {"Time per item."});
  figure("sequence", &WorkerProfile::sequence,
         {"A bounded run of consecutive items, newest last; in bursts where items are fast."});
  figure("slowest", &WorkerProfile::slowest, {"The slowest items, slowest first; at most 8."});
  figure("worker_id", &WorkerProfile::worker_id,
         {"The loader's own number of the worker process; null for a thread.", &kName});
  figure("shard", &WorkerProfile::shard,
         {"\"2 of 4\": the worker's part of a stream that is split over the workers; else \"\"."});
  figure("read_bytes", &WorkerProfile::read_bytes,
         {.says = "Bytes that the thread read with system calls, from files, pipes and sockets, whatever it "
                  "ran; memory-mapped files are not counted. Null where the kernel does not tell.",
          .fold = Fold::sum});
  figure("read_calls", &WorkerProfile::read_calls,
         {.says = "These calls. `read_bytes / read_calls` of a few kB: many small reads, which slow storage "
                  "serves badly.",
          .unit = &kCount,
          .fold = Fold::sum});
  figure(
      "storage_bytes", &WorkerProfile::storage_bytes,
      {.says = "Bytes that storage had to deliver for the thread, memory-mapped files included. Near 0: all "
               "of it was in the page cache.",
       .fold = Fold::sum});
  figure("major_faults", &WorkerProfile::major_faults,
         {.says = "Page faults that read from storage: a memory-mapped file that was not in memory.",
          .unit = &kCount,
          .fold = Fold::sum});
  figure("process_cpu_s", &WorkerProfile::process_cpu_s,
         {.says = "CPU time of all threads of the worker's process. Far above `cpu_s`: a library computes in "
                  "threads of its own. Null for threads of the loop's process.",
          .fold = Fold::sum});
  figure("process_threads", &WorkerProfile::process_threads,
         {"The most threads that this process was seen with; null as above.", &kCount});
  figure("allowed_cores", &WorkerProfile::allowed_cores,
         {"Cores that the worker's affinity allows; null where the kernel does not tell.", &kCores});
  figure("gc_s", &WorkerProfile::gc_s,
         {.says = "Time that the thread spent in Python's garbage collector, whatever it ran.",
          .fold = Fold::sum});
  figure(
      "out_of_data_s", &WorkerProfile::out_of_data_s,
      {.says = "Time for which its part of a stream had no more items, while the loop went on with those of "
               "others.",
       .fold = Fold::sum});
  figure(
      "current_item_s", &WorkerProfile::current_item_s,
      {"How long it has been at the item that it makes now; null where the run has ended or it makes none."});
  figure("waits_in", &WorkerProfile::waits_in,
         {"What the kernel says the thread of an item of 5 seconds and more does (\"sleeps in "
          "futex_do_wait\"); else \"\"."});
}

struct Parameter {
  std::string parameter;
  double value = 0;
  std::optional<double> min;
  std::optional<double> max;
  bool live = false;
  Quantity sets = Quantity::none;
};

constexpr About about(Of<Parameter>) {
  return {"Parameter", "A parameter of the framework that changes an operator or a queue."};
}
template <class Visit>
constexpr void figures_of(Of<Parameter>, Visit&& figure) {
  figure("parameter", &Parameter::parameter,
         {"Its name, as the user writes it: `decode.workers`, `decoded.capacity`."});
  figure("value", &Parameter::value, {"What it is set to."});
  figure("min", &Parameter::min, {"The least value that makes sense; null: no limit."});
  figure("max", &Parameter::max, {"The largest value that makes sense; null: no limit."});
  figure("live", &Parameter::live, {"Whether it can be set while the loader runs."});
  figure("sets", &Parameter::sets, {"What it sets, as in LoaderParameter."});
}

struct Transfer {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
  std::optional<double> bytes_per_s;
  std::optional<double> pinned_share;
  double copy_s = 0;
  double buffer_wait_s = 0;
};

constexpr About about(Of<Transfer>) {
  return {"Transfer", "What an operator copied to a device, in the steady loop."};
}
template <class Visit>
constexpr void figures_of(Of<Transfer>, Visit&& figure) {
  figure("copies", &Transfer::copies, {"Batches copied."});
  figure("bytes", &Transfer::bytes, {"Bytes copied."});
  figure("bytes_per_s", &Transfer::bytes_per_s,
         {"Rate while copying; null where no copy could be timed. Far below what the bus can do: pageable "
          "memory, or many small copies."});
  figure("pinned_share", &Transfer::pinned_share,
         {"Part of the bytes that came from page-locked memory; null where pinning means nothing (the device "
          "is host memory)."});
  figure("copy_s", &Transfer::copy_s, {"Time of the copies, also where the host did not wait for them."});
  figure("buffer_wait_s", &Transfer::buffer_wait_s,
         {"Time until a buffer of the device was free. Large: what comes after the copy holds the buffers."});
}

struct FunctionShare {
  std::string name;
  double share = 0;
};

constexpr About about(Of<FunctionShare>) {
  return {"FunctionShare", "A function's own part of an operator's time, without what it calls."};
}
template <class Visit>
constexpr void figures_of(Of<FunctionShare>, Visit&& figure) {
  figure("name", &FunctionShare::name, {"`Jpegs.decode (train.py:12)`, `sqlite3.Cursor.execute`."});
  figure("share", &FunctionShare::share, {"Part of the operator's time."});
}

struct OperatorProfile {
  std::string name;
  Word<OperatorKind> kind;
  int workers = 1;
  std::optional<std::uint64_t> items = std::nullopt;
  double items_per_batch = 0;  ///< negative: not known; so are busy_s and demand_s
  double busy_s = 0;
  std::optional<double> cpu_s;
  std::optional<double> pool_cpu_s = std::nullopt;
  double demand_s = 0;
  Latency service;
  States states;
  std::optional<std::uint64_t> failures = std::nullopt;
  std::optional<double> run_queue_wait_s;
  std::optional<double> lock_wait_s = std::nullopt;
  std::optional<double> lock_held_s = std::nullopt;
  std::optional<double> storage_wait_s = std::nullopt;
  std::optional<std::string> file_system = std::nullopt;
  int segment = -1;  ///< negative: none
  bool in_sink = false;
  Word<Executor> executor;
  Word<Fidelity> fidelity;
  std::optional<Transfer> transfer;
  std::optional<Remote> remote = std::nullopt;
  std::vector<Parameter> parameters;
  std::vector<FunctionShare> functions;
  std::vector<WorkerProfile> per_worker;
};

constexpr About about(Of<OperatorProfile>) { return {"Operator", "A stage of the pipeline."}; }
template <class Visit>
constexpr void figures_of(Of<OperatorProfile>, Visit&& figure) {
  figure("name", &OperatorProfile::name, {"What you called it."});
  figure("kind", &OperatorProfile::kind,
         {"sampler, source, map, batch, generator, shuffle, filter, prefetch, transfer, handoff or "
          "pin_memory."});
  figure("workers", &OperatorProfile::workers, {"The most that ran it at one time.", &kOneOrMore});
  figure("items", &OperatorProfile::items, {"Items made; null where they were not counted."});
  figure("items_per_batch", &OperatorProfile::items_per_batch,
         {"Items for one batch at the training loop: the batch size before the collate function, 1 after it. "
          "Null "
          "where items were not counted.",
          nullptr, Null::when_unset});
  figure("busy_s", &OperatorProfile::busy_s,
         {"Time in its body, all workers together, start-up excluded; null where nothing tells it.", nullptr,
          Null::when_unset});
  figure("cpu_s", &OperatorProfile::cpu_s,
         {"CPU time of that. `cpu_s / busy_s` near 1: it computes, so more workers need more cores; near 0: "
          "it sleeps or reads."});
  figure("pool_cpu_s", &OperatorProfile::pool_cpu_s,
         {"CPU time of other threads of its worker processes meanwhile, from the same calls: a library that "
          "computes in threads of its own. Null in threads of the loop's process."});
  figure("demand_s", &OperatorProfile::demand_s,
         {"Busy time per batch / workers: the step that it could sustain alone. Above the training step's "
          "`compute_s` it cannot keep up; far below, it does not matter. Null where nothing tells it.",
          nullptr, Null::when_unset});
  figure("service", &OperatorProfile::service, {"Time per item."});
  figure("states", &OperatorProfile::states, {"What its workers did, as shares of their time."});
  figure("failures", &OperatorProfile::failures, {"Calls that raised; null where they were not counted."});
  figure("run_queue_wait_s", &OperatorProfile::run_queue_wait_s,
         {"The part of the busy time spent ready to run, without a core. A fifth or more: too many workers "
          "for the cores."});
  figure("lock_wait_s", &OperatorProfile::lock_wait_s,
         {"The part of the busy time spent waiting for the interpreter lock, from 50 samples of its threads "
          "a second. A "
          "third or more: its threads take turns. Null without samples, and in processes."});
  figure(
      "lock_held_s", &OperatorProfile::lock_held_s,
      {"The part of the busy time spent holding the interpreter lock, from these samples. Near `cpu_s`: it "
       "computes in "
       "Python, or in C code that keeps the lock; far below: in C code that releases it. Null where nothing "
       "tells who holds the lock."});
  figure(
      "storage_wait_s", &OperatorProfile::storage_wait_s,
      {"The part of the busy time spent waiting for a disk, a network file system or one in user space, from "
       "up to 4 samples of its threads a second. Null without samples."});
  figure("file_system", &OperatorProfile::file_system,
         {"Type of the file system that most of these waits were for (`nfs4`, `fuse`, `ext4`). Null where "
          "that is not known."});
  figure("segment", &OperatorProfile::segment,
         {"Operators of one number share a thread, and their demands add up; null: none.", &kName,
          Null::when_unset});
  figure(
      "in_sink", &OperatorProfile::in_sink,
      {"True: it runs inside GetNext, in the training loop's thread, and does not overlap with the step."});
  figure("executor", &OperatorProfile::executor,
         {"`thread` (of the loop's process), `process`, or \"\" where unknown."});
  figure("fidelity", &OperatorProfile::fidelity,
         {"`exact`: each call was timed. `sampled`: calls came too fast, and at times one in 32 was timed "
          "and counts for all; or the levels of the queues around it were read at "
          "times, and it was at work where it had input and room for output: its busy time is at least that. "
          "`counter`: the loader's own figures. `inclusive`: its time contains what "
          "feeds it, so what happens inside is not told apart."});
  figure("transfer", &OperatorProfile::transfer, {"Copies to a device; null where it makes none."});
  figure("remote", &OperatorProfile::remote,
         {"Requests to a remote service, by clients that Headrace knows; null where it made none."});
  figure("parameters", &OperatorProfile::parameters,
         {"Parameters that set its number of workers or what each worker does."});
  figure("functions", &OperatorProfile::functions,
         {"The functions that take most of its time, from a few batches of one worker; may be empty."});
  figure("per_worker", &OperatorProfile::per_worker, {"These figures per worker."});
}

}  // namespace headrace::profile
