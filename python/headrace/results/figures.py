"""The figures of a profile as plain typed objects. Written by tools/figures.py; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.results.loader_model import LoaderModel


@dataclass
class Startup:
    """Waits for the first batches of epochs, which are kept out of everything else. Tenths of a second for
    forked workers, seconds where workers import much.
    """

    #: From iter() to the first batch of the first epoch.
    first_batch_s: float = 0.0
    #: The part of it until the first worker began its first item; 0 where there is none.
    worker_start_s: float = 0.0
    #: First batches of the later epochs, summed.
    later_epochs_s: float = 0.0


@dataclass
class Latency:
    """How long something took, over many calls. Mean and maximum are exact, quantiles are within 1/16."""

    #: Calls.
    count: int = 0
    #: Mean. Far above the median: a few slow calls make up the time.
    mean_s: float = 0.0
    #: Median: half of the calls were faster.
    p50_s: float = 0.0
    #: Nine in ten were faster.
    p90_s: float = 0.0
    #: 99 in 100 were faster. Far above the median: look at the slowest items.
    p99_s: float = 0.0
    #: The slowest call.
    max_s: float = 0.0


@dataclass
class Stall:
    """One long wait of the training loop."""

    #: When, since the loop began, start-up excluded.
    at_s: float = 0.0
    #: How long.
    wait_s: float = 0.0
    #: Number of the batch.
    step: int = 0


@dataclass
class StepSample:
    """One step of the training loop."""

    #: Its GetNext wait.
    wait_s: float = 0.0
    #: Time until the next GetNext.
    compute_s: float = 0.0
    #: CPU time of that in the loop's own thread; null where it was not read.
    cpu_s: float | None = None
    #: The part of the compute until forward began; null where no hook marked it.
    before_forward_s: float | None = None
    #: The part of the compute from the end of backward on; null where no hook marked it.
    tail_s: float | None = None


@dataclass
class MarkedSteps:
    """Steps cut where `hr.trace_steps` or `hr.step` marked forward and backward (steps.md). Times are the
    host's, means over `steps`.
    """

    #: Steps in which the beginning of forward was marked.
    steps: int = 0
    #: Steps with a steady wait; first steps of epochs have none.
    of_steps: int = 0
    #: Those of `steps` in which the end of backward was marked too.
    tail_steps: int = 0
    #: From the end of a step to the next forward.
    iteration_gap_s: float = 0.0
    #: Forward and backward, with the tail of steps whose end of backward is unknown.
    forward_backward_s: float = 0.0
    #: From the end of backward to the next GetNext; 0 in steps whose end of backward is unknown.
    tail_s: float = 0.0


@dataclass
class Sink:
    """The training loop: what calls GetNext."""

    #: Batches yielded, first ones included.
    steps: int = 0
    #: Mean of a steady step: GetNext wait + compute.
    step_s: float = 0.0
    #: Mean time between two GetNext calls.
    compute_s: float = 0.0
    #: CPU time of that in the loop's own thread. Far below `compute_s`: the step sleeps or waits for a
    #: device.
    compute_cpu_s: float | None = None
    #: The part of `compute_s` in which the loop's thread waited for the interpreter lock, from 50 samples a
    #: second. A tenth of the step or more: threads of the input slow the step down. Null without samples.
    compute_lock_wait_s: float | None = None
    #: The part of `compute_s` in which the loop's thread held the interpreter lock, from these samples. Null
    #: where nothing tells who holds the lock.
    compute_lock_held_s: float | None = None
    #: The part of `compute_s` in which the loop's thread was ready to run without a core, from samples and
    #: CPU time. Many busy workers or threads on few cores slow the step down like that.
    compute_core_wait_s: float | None = None
    #: Mean time per step of the loop's thread in Python's garbage collector.
    gc_s: float = 0.0
    #: Mean compute of steps with no busy worker. Well below `compute_s`: the workers slow the step down.
    quiet_compute_s: float | None = None
    #: How many such steps there were.
    quiet_steps: int = 0
    #: How long the device works on a step, on its own clock, from marks in its queue at both ends of some
    #: steps. Null where no asynchronous device is in use.
    device_span_s: float | None = None
    #: Compute of the same steps on the host. Far below `device_span_s`: the host runs ahead, and the device
    #: works on while the loop waits.
    device_host_s: float | None = None
    #: How many steps were marked like that.
    device_steps: int = 0
    #: Memory of the largest batch looked at (the 1st, 2nd, 4th, ...); null where it holds no tensors or
    #: arrays.
    batch_bytes: int | None = None
    #: A step over batches that were kept in memory, measured by `headrace run --ceiling`: what the fastest
    #: input would give. Null where it was not measured.
    ceiling_step_s: float | None = None
    #: Steady waits. A median near 0 beside a large mean: few long waits, as in `slow_samples`.
    getnext_wait: Latency = field(default_factory=Latency)
    #: GetNext wait / time. Near 0 the input is free; at 0.5 half of the device's time may go into waiting.
    wait_share: float = 0.0
    #: The part of the starved time spent waiting for the first batch that a worker made at all, while it
    #: started. The gate leaves it out.
    worker_start_wait_s: float = 0.0
    #: Part of `wait_share` in which no batch was there. Under 0.05: healthy.
    starved_share: float = 0.0
    #: Mean wait when the batch was ready: microseconds between threads, 1 to 2 ms from loader's workers.
    handoff_floor_s: float = 0.0
    #: GetNext calls that found their batch ready / calls. Near 0 starving; near 1 healthy, or `handoff`, or a
    #: few long waits (`slow_samples`).
    ready_share: float = 0.0
    #: The waits were cut to whole multiples of this, so each may be that much longer; null: they were not.
    wait_resolution_s: float | None = None
    #: The longest, longest first; at most 8.
    longest_waits: list[Stall] = field(default_factory=list)
    #: The last 512 steps, newest last.
    sequence: list[StepSample] = field(default_factory=list)
    #: Steps cut by hooks; null where there were none.
    marked: MarkedSteps | None = None


@dataclass
class States:
    """Shares of the time that an operator's workers were present; they sum to 1 (all 0 where nothing was
    recorded).
    """

    #: In the operator's body. Near 1: the workers never rest.
    busy: float = 0.0
    #: Waiting for input. Near 1: look upstream.
    blocked_in: float = 0.0
    #: Waiting for room in the output. Near 1: look downstream.
    blocked_out: float = 0.0
    #: Not started, finished or paused.
    idle: float = 0.0


@dataclass
class Transfer:
    """What an operator copied to a device, in the steady loop."""

    #: Batches copied.
    copies: int = 0
    #: Bytes copied.
    bytes: int = 0
    #: Rate while copying; null where no copy could be timed. Far below what the bus can do: pageable memory,
    #: or many small copies.
    bytes_per_s: float | None = None
    #: Part of the bytes that came from page-locked memory; null where pinning means nothing (the device is
    #: host memory).
    pinned_share: float | None = None
    #: Time of the copies, also where the host did not wait for them.
    copy_s: float = 0.0
    #: Time until a buffer of the device was free. Large: what comes after the copy holds the buffers.
    buffer_wait_s: float = 0.0


@dataclass
class RemoteLoad:
    """Successful answers by the number of requests that the run had in flight meanwhile, all processes
    together; start-up included.
    """

    #: Answers before whose first byte about so many requests waited.
    answers: int = 0
    #: Mean number of these requests, itself included; 0: no answers.
    waiting: float = 0.0
    #: Mean time until the first byte of these answers. In proportion to `waiting`: the service computes, or
    #: queues requests; constant: it is latency.
    first_byte_s: float = 0.0
    #: Answers beside whose body about so many others arrived.
    transfers: int = 0
    #: Mean number of these bodies, itself included; 0: none.
    transferring: float = 0.0
    #: Bytes of these bodies.
    bytes: int = 0
    #: Time from the first byte to the last, all together. Per byte, in proportion to `transferring`: they
    #: share a full link; constant: each connection has its own rate.
    transfer_s: float = 0.0


@dataclass
class RemoteTrend:
    """How one figure of the answers depends on another, by a straight line through all of them."""

    #: Of the line.
    slope: float = 0.0
    #: Standard error of the slope: large where the other figure hardly varied.
    error: float = 0.0
    #: Standard deviation of the other figure. A slope over next to none (under 0.1 for a load) is one of
    #: chance or of the counting.
    spread: float = 0.0


@dataclass
class Remote:
    """Requests to a remote service (HTTP, object stores), start-up left out. Each attempt is one request."""

    #: Attempts, answered or not.
    requests: int = 0
    #: Bytes of the answers' bodies, as they came over the network.
    bytes: int = 0
    #: Answered with a status below 300.
    ok: int = 0
    #: Answered with a status of 300 to 399.
    redirects: int = 0
    #: Answered with a status of 400 to 499, 429 left out.
    client_errors: int = 0
    #: Refused with status 429: the service limits the rate.
    too_many_requests: int = 0
    #: Answered with a status of 500 and more, 503 left out.
    server_errors: int = 0
    #: Refused with status 503: the service is overloaded, or slows down.
    unavailable: int = 0
    #: Without a whole answer: no connection, or it broke.
    connection_errors: int = 0
    #: Attempts of what had been refused just before.
    retries: int = 0
    #: Time between a refused attempt and the next one. A good part of the operator's `busy_s`: the service is
    #: throttled, and more readers make that worse.
    backoff_s: float = 0.0
    #: Time in flight of attempts that were not answered with success.
    refused_s: float = 0.0
    #: Time from the request to the first byte of a successful answer, all together. Most of the latency: the
    #: service or the way to it is slow, not the link full.
    first_byte_s: float = 0.0
    #: Time from the first byte to the last of successful answers, all together. The reader's own pauses while
    #: it takes the body are in it.
    transfer_s: float = 0.0
    #: From the request to the last byte of a successful answer.
    latency: Latency = field(default_factory=Latency)
    #: Successful reads of what the run had not read before.
    first_reads: int = 0
    #: Latency of these, all together.
    first_reads_s: float = 0.0
    #: Successful reads of what the run had read before.
    repeated_reads: int = 0
    #: Latency of these, all together. Far less each than of first reads: a cache was cold.
    repeated_reads_s: float = 0.0
    #: How the answers depend on the number of requests in flight.
    load: list[RemoteLoad] = field(default_factory=list)
    #: Exponent with which the time to the first byte grows with the requests that wait. Near 1: the service
    #: is busy; near 0: it is latency. Null where that number never varied.
    first_byte_by_load: RemoteTrend | None = None
    #: The same of the time per byte and the bodies that arrive at once. Near 1: they share a full link.
    transfer_by_load: RemoteTrend | None = None
    #: How much longer an answer takes where its reader had paused longer before it, s per s. Near -1: the
    #: request waits in a queue of the service, so a busy service sets the pace; near 0: it does not wait.
    answer_by_pause: RemoteTrend | None = None


@dataclass
class Parameter:
    """A parameter of the framework that changes an operator or a queue."""

    #: Its name, as the user writes it: `decode.workers`, `decoded.capacity`.
    parameter: str = ""
    #: What it is set to.
    value: float = 0.0
    #: The least value that makes sense; null: no limit.
    min: float | None = None
    #: The largest value that makes sense; null: no limit.
    max: float | None = None
    #: Whether it can be set while the loader runs.
    live: bool = False
    #: What it sets, as in LoaderParameter.
    sets: str = "none"


@dataclass
class FunctionShare:
    """A function's own part of an operator's time, without what it calls."""

    #: `Jpegs.decode (train.py:12)`, `sqlite3.Cursor.execute`.
    name: str = ""
    #: Part of the operator's time.
    share: float = 0.0


@dataclass
class ServiceSample:
    """One recorded item of an operator."""

    #: Number of the item: in `slowest` the dataset's own where it has one, else the worker's running number.
    index: int = 0
    #: Time in the body, without nested operators and queue waits.
    wall_s: float = 0.0
    #: CPU time of that; null where it was not read.
    cpu_s: float | None = None


@dataclass
class WorkerProfile:
    """An operator in one of its workers (a thread or a process)."""

    #: "pid/tid", or the loader's own number of the worker.
    name: str = ""
    #: Process of the worker.
    pid: int = 0
    #: Thread of the worker.
    tid: int = 0
    #: Whether the worker still ran when the figures were read.
    alive: bool = False
    #: Items that this worker made.
    items: int = 0
    #: Calls that raised.
    failures: int = 0
    #: Time in the operator's body.
    busy_s: float = 0.0
    #: CPU time of that, estimated from sampled calls. Near `busy_s` it computes, near 0 it sleeps or reads.
    cpu_s: float | None = None
    #: Time for which the thread was ready to run and had no core, whatever it ran.
    run_queue_wait_s: float | None = None
    #: What the worker did, as shares of its time.
    states: States = field(default_factory=States)
    #: Time per item.
    service: Latency = field(default_factory=Latency)
    #: A bounded run of consecutive items, newest last; in bursts where items are fast.
    sequence: list[ServiceSample] = field(default_factory=list)
    #: The slowest items, slowest first; at most 8.
    slowest: list[ServiceSample] = field(default_factory=list)
    #: The loader's own number of the worker process; null for a thread.
    worker_id: int | None = None
    #: "2 of 4": the worker's part of a stream that is split over the workers; else "".
    shard: str = ""
    #: Bytes that the thread read with system calls, from files, pipes and sockets, whatever it ran;
    #: memory-mapped files are not counted. Null where the kernel does not tell.
    read_bytes: int | None = None
    #: These calls. `read_bytes / read_calls` of a few kB: many small reads, which slow storage serves badly.
    read_calls: int | None = None
    #: Bytes that storage had to deliver for the thread, memory-mapped files included. Near 0: all of it was
    #: in the page cache.
    storage_bytes: int | None = None
    #: Page faults that read from storage: a memory-mapped file that was not in memory.
    major_faults: int | None = None
    #: CPU time of all threads of the worker's process. Far above `cpu_s`: a library computes in threads of
    #: its own. Null for threads of the loop's process.
    process_cpu_s: float | None = None
    #: The most threads that this process was seen with; null as above.
    process_threads: int | None = None
    #: Cores that the worker's affinity allows; null where the kernel does not tell.
    allowed_cores: int | None = None
    #: Time that the thread spent in Python's garbage collector, whatever it ran.
    gc_s: float = 0.0
    #: Time for which its part of a stream had no more items, while the loop went on with those of others.
    out_of_data_s: float = 0.0
    #: How long it has been at the item that it makes now; null where the run has ended or it makes none.
    current_item_s: float | None = None
    #: What the kernel says the thread of an item of 5 seconds and more does ("sleeps in futex_do_wait"); else
    #: "".
    waits_in: str = ""


@dataclass
class Operator:
    """A stage of the pipeline."""

    #: What you called it.
    name: str = ""
    #: sampler, source, map, batch, generator, shuffle, filter, prefetch, transfer, handoff or pin_memory.
    kind: str = ""
    #: The most that ran it at one time.
    workers: int = 1
    #: Items made; null where they were not counted.
    items: int | None = None
    #: Items for one batch at the training loop: the batch size before the collate function, 1 after it. Null
    #: where items were not counted.
    items_per_batch: float | None = None
    #: Time in its body, all workers together, start-up excluded; null where nothing tells it.
    busy_s: float | None = None
    #: CPU time of that. `cpu_s / busy_s` near 1: it computes, so more workers need more cores; near 0: it
    #: sleeps or reads.
    cpu_s: float | None = None
    #: CPU time of other threads of its worker processes meanwhile, from the same calls: a library that
    #: computes in threads of its own. Null in threads of the loop's process.
    pool_cpu_s: float | None = None
    #: Busy time per batch / workers: the step that it could sustain alone. Above the training step's
    #: `compute_s` it cannot keep up; far below, it does not matter. Null where nothing tells it.
    demand_s: float | None = None
    #: Time per item.
    service: Latency = field(default_factory=Latency)
    #: What its workers did, as shares of their time.
    states: States = field(default_factory=States)
    #: Calls that raised; null where they were not counted.
    failures: int | None = None
    #: The part of the busy time spent ready to run, without a core. A fifth or more: too many workers for the
    #: cores.
    run_queue_wait_s: float | None = None
    #: The part of the busy time spent waiting for the interpreter lock, from 50 samples of its threads a
    #: second. A third or more: its threads take turns. Null without samples, and in processes.
    lock_wait_s: float | None = None
    #: The part of the busy time spent holding the interpreter lock, from these samples. Near `cpu_s`: it
    #: computes in Python, or in C code that keeps the lock; far below: in C code that releases it. Null where
    #: nothing tells who holds the lock.
    lock_held_s: float | None = None
    #: The part of the busy time spent waiting for a disk, a network file system or one in user space, from up
    #: to 4 samples of its threads a second. Null without samples.
    storage_wait_s: float | None = None
    #: Type of the file system that most of these waits were for (`nfs4`, `fuse`, `ext4`). Null where that is
    #: not known.
    file_system: str | None = None
    #: Operators of one number share a thread, and their demands add up; null: none.
    segment: int | None = None
    #: True: it runs inside GetNext, in the training loop's thread, and does not overlap with the step.
    in_sink: bool = False
    #: `thread` (of the loop's process), `process`, or "" where unknown.
    executor: str = ""
    #: `exact`: each call was timed. `sampled`: calls came too fast, and at times one in 32 was timed and
    #: counts for all; or the levels of the queues around it were read at times, and it was at work where it
    #: had input and room for output: its busy time is at least that. `counter`: the loader's own figures.
    #: `inclusive`: its time contains what feeds it, so what happens inside is not told apart.
    fidelity: str = ""
    #: Copies to a device; null where it makes none.
    transfer: Transfer | None = None
    #: Requests to a remote service, by clients that Headrace knows; null where it made none.
    remote: Remote | None = None
    #: Parameters that set its number of workers or what each worker does.
    parameters: list[Parameter] = field(default_factory=list)
    #: The functions that take most of its time, from a few batches of one worker; may be empty.
    functions: list[FunctionShare] = field(default_factory=list)
    #: These figures per worker.
    per_worker: list[WorkerProfile] = field(default_factory=list)


@dataclass
class Queue:
    """A bounded buffer between two operators."""

    #: What you called it.
    name: str = ""
    #: Operator that puts; several are joined by ", ", and it is "" where unknown.
    from_: str = ""
    #: Operator that takes; `sink`: the training loop.
    to: str = ""
    #: Places in `operators` of those that put.
    from_operators: list[int] = field(default_factory=list)
    #: Places in `operators` of those that take.
    to_operators: list[int] = field(default_factory=list)
    #: Whether the training loop takes from it.
    to_sink: bool = False
    #: What it holds; 0: no limit is known.
    capacity: int = 0
    #: What an entry is: `items` or `batches`.
    unit: str = "items"
    #: Share of time at each level from 0 up; empty where no time passed. One end only: one side always waits.
    #: Both ends: they take turns, and a longer queue may help.
    occupancy: list[float] = field(default_factory=list)
    #: Levels that one entry of `occupancy` stands for; above 1 for long queues.
    levels_per_bin: int = 1
    #: Mean level.
    mean: float = 0.0
    #: Share of time empty: what takes from it waits.
    empty_share: float = 0.0
    #: Share of time full: what fills it waits.
    full_share: float = 0.0
    #: How often its level was read, where it was only read at times; null where each change was seen.
    samples: int | None = None
    #: Items in; null where they were not counted.
    puts: int | None = None
    #: Items out; null where they were not counted.
    gets: int | None = None
    #: Time that producers waited for room, summed; null where it was not measured.
    put_wait_s: float | None = None
    #: Time that consumers waited for items, summed; null where it was not measured.
    get_wait_s: float | None = None
    #: For how long an item lay in it, from its put to its get; null where that is unknown. Many steps: what
    #: the training loop takes is stale, as rollouts of an older policy are.
    item_age: Latency | None = None
    #: `exact`: each put and get was seen. `sampled`: the level was read at times: 1000 times a second where
    #: items came too fast (`puts` and `gets` are exact), or as often as `samples` says.
    fidelity: str = ""
    #: Parameters that set its capacity.
    parameters: list[Parameter] = field(default_factory=list)


@dataclass
class LedgerRow:
    """What the awaited batch was doing while the training loop waited. The rows sum to the GetNext wait."""

    #: `in_service`: it was being made. `waiting_for_worker`: its worker was still at an earlier batch.
    #: `order`: younger batches were ready, it was not. `handoff`: it was finished and on its way. `unknown`:
    #: not seen; above half, the ledger has no say.
    what: str = ""
    #: Where; null where no operator can be named.
    operator: str | None = None
    #: Time waited.
    seconds: float = 0.0
    #: Part of the GetNext wait.
    share: float = 0.0


@dataclass
class Handoff:
    """What passing batches from worker processes to the training loop costs: means per batch, except the
    counts.
    """

    #: Received.
    batches: int = 0
    #: Size of the pickled message that goes through the pipe: 0.3 to 1 kB for tensors; megabytes are arrays,
    #: see `handoff`.
    message_bytes: float = 0.0
    #: Passed through shared memory, each 0.2 to 0.4 ms to receive.
    tensors: float = 0.0
    #: Packing, in the worker: 0.5 to 1 ms. Far more wall than CPU time: the worker is too busy to send.
    pickle_s: float = 0.0
    #: CPU time of that.
    pickle_cpu_s: float = 0.0
    #: Writing it into the pipe: 0.2 ms; more, and the pipe is full.
    send_s: float = 0.0
    #: Unpacking, in the loop's process: 1 to 1.5 ms, however many workers there are.
    receive_s: float = 0.0
    #: CPU time of that, 0.7 ms.
    receive_cpu_s: float = 0.0
    #: Prefetched and never used: the loop was left early.
    unused_batches: int = 0


@dataclass
class HandoffEstimate:
    """What passing a batch from a worker process would cost a loader that has none, from at most two
    batches.
    """

    #: Pickled objects and arrays, which would pass through a pipe; a lower bound from 1 MB on.
    message_bytes: float = 0.0
    #: Would pass through shared memory.
    tensors: float = 0.0
    #: CPU time for pickling the objects around them. A millisecond or more: return plain containers of
    #: tensors before adding workers.
    pickle_cpu_s: float = 0.0


@dataclass
class WindowOperator:
    """An operator in one window, in the order of `operators`."""

    #: Part of its workers' time in its body; null where that is not known.
    busy_share: float | None = None
    #: Busy time per batch delivered in this window / workers; 0 where no batch was delivered, null where the
    #: busy time is not known.
    demand_s: float | None = None
    #: Items made; null where they were not counted.
    items: int | None = None


@dataclass
class WindowQueue:
    """A queue in one window, in the order of `queues`."""

    #: Mean level.
    mean: float = 0.0
    #: Share of the window empty.
    empty_share: float = 0.0
    #: Share of the window full.
    full_share: float = 0.0


@dataclass
class WindowHost:
    """The machine in one window."""

    #: Share of the cores that this run's process trees use.
    cpu_share: float | None = None
    #: Share of the cores that everybody else uses, plus stolen time.
    foreign_cpu_share: float | None = None
    #: Share of the window in which the CPU quota stopped the run.
    throttled_share: float | None = None


@dataclass
class Window:
    """The same figures per stretch of time, 0.1 s at first, wider in long runs."""

    #: Since the loop began, start-up and pauses between epochs excluded.
    start_s: float = 0.0
    #: The same.
    end_s: float = 0.0
    #: Batches delivered.
    steps: int = 0
    #: Time in GetNext.
    wait_s: float = 0.0
    #: The part of it in which no batch was there.
    starved_s: float = 0.0
    #: Time between GetNext calls.
    compute_s: float = 0.0
    #: As of the whole run, in its order.
    operators: list[WindowOperator] = field(default_factory=list)
    #: As of the whole run, in its order.
    queues: list[WindowQueue] = field(default_factory=list)
    #: The machine meanwhile.
    host: WindowHost = field(default_factory=WindowHost)


@dataclass
class RankFigures:
    """The same loader in another rank of the run."""

    #: Its number.
    rank: int = 0
    #: Steady steps.
    steps: int = 0
    #: Mean of a steady step.
    step_s: float = 0.0
    #: Mean time between two GetNext calls.
    compute_s: float = 0.0
    #: GetNext wait / time.
    wait_share: float = 0.0
    #: Part of it in which no batch was there.
    starved_share: float = 0.0
    #: Demand of its operator with the largest one.
    demand_s: float = 0.0
    #: Name of that operator.
    operator: str = ""


@dataclass
class Host:
    """The machine."""

    #: That affinity and cgroup quota allow, rounded up.
    cores: int = 0
    #: Share of the cores that this run uses, with its workers.
    cpu_share: float | None = None
    #: The loop's own process, in cores. Near 1 with busy threads: think of the interpreter lock.
    process_cpu_cores: float | None = None
    #: Share of the cores that everybody else uses, stolen time included.
    foreign_cpu_share: float | None = None
    #: The part of `foreign_cpu_share` that this run went without. From 0.05 on the verdict is less sure,
    #: above 0.2 there are no predictions.
    foreign_contention_share: float | None = None
    #: Share of the time in which the CPU quota stopped the run. 0.1 is a cause by itself.
    throttled_share: float | None = None
    #: Share of the workers' time spent ready to run, without a core. 0.04 is usual, more says that cores are
    #: short.
    run_queue_wait_share: float | None = None
    #: Share of the time in which some task on the machine waited for I/O. Shown, and part of no rule.
    io_pressure_share: float | None = None
    #: Share of the time in which some task of the run's cgroup (or the machine) waited for memory. Near 0
    #: where memory suffices.
    memory_pressure_share: float | None = None
    #: Read again soon after the page cache had to drop it, on the whole machine.
    refaulted_bytes: float | None = None
    #: Read back from swap, on the whole machine.
    swapped_in_bytes: float | None = None
    #: What could still be allocated when it was last read: the machine's memory, or what a cgroup's limit
    #: leaves.
    available_memory: int | None = None
    #: Bytes by which that became less per second, from the first second of the loop on; null in runs of less
    #: than a minute.
    memory_loss_per_s: float | None = None
    #: Free in /dev/shm, the least that was seen. Worker processes hand batches over there.
    shared_memory: int | None = None
    #: Probes that found the interpreter lock taken for 1 ms; only made while the process uses 0.6 cores and
    #: has busy workers in threads, else null.
    gil_share: float | None = None
    #: Resident memory of the run's processes.
    memory: int | None = None
    #: Requests to remote services that no operator made, as those of the training step; null: none.
    remote: Remote | None = None


@dataclass
class DeviceIdleCause:
    """A part of the time in which a device computed nothing (device_traces.md)."""

    #: input, launch, communication, copy, kernel_gap or unknown.
    cause: str = ""
    #: Time lost to it.
    idle_s: float = 0.0


@dataclass
class GapPart:
    """A part of the gap between two steps, a mean."""

    #: `processing`: GetNext waited, the queue on the device and the one on the host were empty.
    #: `transmission`: only the one on the device was. `getnext`: taking a batch that was there. `unknown`:
    #: the rest, such as launching the first operator.
    cause: str = ""
    #: Time of it.
    gap_s: float = 0.0


@dataclass
class StepSegment:
    """A part of a step that has a name of its own, such as one all-reduce; a mean."""

    #: As the trace calls it.
    name: str = ""
    #: Since the step began.
    start_s: float = 0.0
    #: How long it took.
    takes_s: float = 0.0


@dataclass
class DeviceStep:
    """A step of a device trace, cut on the device's clock. A part that is unknown is null, and the one to
    its left contains it.
    """

    #: The profiler's number.
    step: int = 0
    #: Until forward began.
    iteration_gap_s: float | None = None
    #: Forward and backward.
    forward_backward_s: float | None = None
    #: From the end of backward on.
    tail_s: float | None = None
    #: The whole step.
    total_s: float = 0.0
    #: Time in which a collective ran.
    communication_s: float = 0.0
    #: The part of it under computation; null where the trace does not tell.
    communication_overlap_s: float | None = None


@dataclass
class DeviceSteps:
    """The steps of a device trace (steps.md). Times are means over `steps`."""

    #: Steps in which the beginning of forward was found.
    steps: int = 0
    #: Whole steps of the trace.
    of_steps: int = 0
    #: Those of `steps` in which the end of backward was found too.
    tail_steps: int = 0
    #: Until forward began.
    iteration_gap_s: float = 0.0
    #: Forward and backward, with the tail of steps whose end of backward is unknown.
    forward_backward_s: float = 0.0
    #: From the end of backward on; 0 in steps whose end of backward is unknown.
    tail_s: float = 0.0
    #: Time in which a collective ran.
    communication_s: float = 0.0
    #: The part of it under computation; null where the trace does not tell.
    communication_overlap_s: float | None = None
    #: What `iteration_gap_s` was spent on; empty where nothing tells.
    gap: list[GapPart] = field(default_factory=list)
    #: Its collectives by name, where the trace tells them.
    segments: list[StepSegment] = field(default_factory=list)
    #: The work that forward begins with, as the user or the profiler named it; "": it was found.
    fp_point: str = ""
    #: The work that backward ends with, as the user or the profiler named it; "": it was found.
    bp_point: str = ""
    #: The last 512 steps, newest last.
    sequence: list[DeviceStep] = field(default_factory=list)


@dataclass
class DeviceProfile:
    """What a device did while the loop ran, from a trace that was laid beside the run
    (`report.with_trace`).
    """

    #: Time looked at: of the trace's steps, or from the first to the last work on the device.
    window_s: float = 0.0
    #: The part of it in which nothing was computed; null where the trace has steps only.
    idle_s: float | None = None
    #: Why, the largest first; they sum to `idle_s`.
    causes: list[DeviceIdleCause] = field(default_factory=list)
    #: Where the waits come from: `run` (recorded) or `trace` (its own `__next__` ranges).
    waits_from: str = ""
    #: How far the run's clock and the trace's may be apart; null where no clocks were compared.
    clock_error_s: float | None = None
    #: The rank of the trace; null where its file does not say.
    rank: int | None = None
    #: The trace's steps; null where it has no whole step.
    steps: DeviceSteps | None = None
    #: What the trace's steps lack, a sentence each.
    step_notes: list[str] = field(default_factory=list)


@dataclass
class SecondOpinion:
    """What another tool concludes from the same files, by its own published rule. It has no part in the
    diagnosis.
    """

    #: Whose rule it is.
    tool: str = ""
    #: Which of its rules.
    rule: str = ""
    #: Its conclusion, in the words of the tool.
    says: str = ""
    #: Operators that it names, joined by ", "; null: none.
    operator: str | None = None
    #: Why it does not fit the recording; null where nothing speaks against it.
    misled: str | None = None


@dataclass
class Finding:
    """Something that is wrong with the data or the training, and where."""

    #: What is wrong, in one word: nonfinite_batch, order_identical, leak ...
    kind: str = ""
    #: "fault": what makes training worse; "note": what may be meant so.
    severity: str = ""
    #: The field of the batch, the attribute of the dataset, the module or the parameter, as the program
    #: writes it.
    where: str = ""
    #: The step it was first seen in, from 0; null: it belongs to none.
    first_step: int | None = None
    #: In how many of the steps that were looked at.
    steps: int = 0
    #: Dataset indices of the samples concerned; empty where none are known.
    samples: list[int] = field(default_factory=list)
    #: A sentence with the evidence.
    says: str = ""
    #: The numbers that it rests on.
    figures: dict[str, float] = field(default_factory=dict)
    #: What to do.
    cure: str = ""


@dataclass
class BudgetPart:
    """A part of the run's wall clock, of one place in the program. All parts add up to it."""

    #: `steps`: of the training loop. `waits`: its GetNext. `startup`: before the first loop (imports, the
    #: dataset), and first batches of epochs (workers start). `evaluation`, `checkpoints`, `logging`,
    #: `weight_sync` (weights go to what generates samples): by what the loop's thread was in.
    #: `between_epochs`: anything else between two loops. `other`: the rest.
    part: str = ""
    #: The loader that the part is of; null where it is of none.
    loader: str | None = None
    #: The function that the program calls there, with the line of the call, from samples of the thread's
    #: stack; null where none was seen.
    function: str | None = None
    #: How long.
    seconds: float = 0.0
    #: Part of the run's wall clock.
    share: float = 0.0
    #: How often it began: pauses, epochs; of `steps`, how many.
    times: int = 0
    #: Training steps from one time to the next, on average; null: it was there once.
    period: float | None = None
    #: The part of `seconds` until a loader's epochs had their first batch.
    loader_start_s: float = 0.0
    #: What to do; null: nothing.
    cure: str | None = None
    #: What that saves of this run, at most; null where it cannot be said.
    saves_s: float | None = None


@dataclass
class LengthBin:
    """Sequences of a length: longer than those of the bin before, and up to this."""

    #: Tokens.
    up_to: int = 0
    #: Of all sequences.
    share: float = 0.0


@dataclass
class TokenSaving:
    """What another way to form batches would save."""

    #: `pad_to_longest`: rows as long as the longest of their batch. `bucket`: batches of sequences of similar
    #: length. `pack`: several sequences in a row. `batch_by_tokens`: as many rows as hold a number of tokens.
    change: str = ""
    #: Share of the places that a step computes, from the recorded lengths; of `batch_by_tokens`, how much
    #: smaller the largest batch gets.
    saves: float = 0.0
    #: What to do.
    says: str = ""


@dataclass
class Tokens:
    """Batches of language data: what is in them, from some of them (docs/tokens.md)."""

    #: How many were looked into.
    batches: int = 0
    #: Tokens in a batch, padding excluded; mean.
    tokens: float = 0.0
    #: Places in a batch: rows times their width; mean.
    places: float = 0.0
    #: Tokens that a second of training takes from this loader.
    tokens_per_s: float | None = None
    #: Part of the places without a token. The step computes them, too.
    padding_share: float = 0.0
    #: In a batch; mean.
    rows: float = 0.0
    #: Above 1: sequences are packed. From position ids or lengths in the batch.
    sequences_per_row: float = 0.0
    #: Whether all batches are equally wide.
    fixed_width: bool = False
    #: Tokens in a sequence.
    length_mean: float = 0.0
    #: Half of the sequences are no longer.
    length_p50: int = 0
    #: Nine of ten are no longer.
    length_p90: int = 0
    #: The longest.
    length_max: int = 0
    #: How many are how long.
    lengths: list[LengthBin] = field(default_factory=list)
    #: By how much the rank with the most tokens exceeds the mean of its step, on average; the others wait for
    #: it. Null for one rank.
    rank_imbalance: float | None = None
    #: The largest first; empty where nothing saves 5 %.
    savings: list[TokenSaving] = field(default_factory=list)


@dataclass
class ParameterChange:
    """A parameter that was set while the program trained. Steps have their part of what the beginnings of
    epochs cost.
    """

    #: Name of the loader.
    loader: str = ""
    #: Steps that its loops had done by then.
    step: int = 0
    #: In the framework's own name; several with commas between.
    parameter: str = ""
    #: What it was.
    from_value: str = ""
    #: What was tried.
    to_value: str = ""
    #: `kept`, `put_back`, or `tried`: the run ended before it was judged.
    outcome: str = ""
    #: Why, in words; null: not judged.
    says: str | None = None
    #: The step that was expected; null: it could not be predicted.
    predicted_step_s: float | None = None
    #: The mean step with the best parameters before; null: not judged.
    before_step_s: float | None = None
    #: The mean step with this one.
    after_step_s: float | None = None
    #: The ratio of the steps, after / before, is from here to `high` in 99 of 100 cases.
    low: float | None = None
    #: See `low`; null: too little was recorded to tell.
    high: float | None = None


@dataclass
class Profile:
    """What was recorded of one loader in one rank."""

    #: Name of the loader.
    loader: str = ""
    #: How the framework's loader is set, as you would write it; empty for pipelines of your own.
    settings: dict[str, str] = field(default_factory=dict)
    #: How the framework's loader is built and set; null for pipelines of your own and for loaders that are
    #: not known.
    model: LoaderModel | None = None
    #: Which rank of the job.
    rank: int = 0
    #: Steady time covered: GetNext waits and computes.
    elapsed_s: float = 0.0
    #: Loops begun.
    epochs: int = 0
    #: Kept out of everything else.
    startup: Startup = field(default_factory=Startup)
    #: The training loop.
    sink: Sink = field(default_factory=Sink)
    #: In the order of the data flow, source first.
    operators: list[Operator] = field(default_factory=list)
    #: Between the operators.
    queues: list[Queue] = field(default_factory=list)
    #: What the awaited batches were doing.
    stall_ledger: list[LedgerRow] = field(default_factory=list)
    #: Null where batches do not pass between processes.
    handoff: Handoff | None = None
    #: What handing over a batch would cost with workers, for a loader without them; null where there are
    #: workers, or the batch cannot be pickled.
    handoff_estimate: HandoffEstimate | None = None
    #: The run over time.
    windows: list[Window] = field(default_factory=list)
    #: The other ranks of the run folder; empty where it was not read.
    ranks: list[RankFigures] = field(default_factory=list)
    #: Ranks of the run that the others wait for, the slowest first; empty where there are none or the ranks
    #: were not compared.
    slow_ranks: list[int] = field(default_factory=list)
    #: The machine.
    host: Host = field(default_factory=Host)
    #: Null where no device trace was laid beside the run.
    device: DeviceProfile | None = None
    #: What other tools conclude from the same files; empty for what Headrace recorded itself.
    second_opinions: list[SecondOpinion] = field(default_factory=list)
    #: What is wrong with the data and the training, worst first; empty where nobody watched.
    findings: list[Finding] = field(default_factory=list)
    #: Where the wall clock of the rank's run went, the largest part first; empty where it was not watched.
    budget: list[BudgetPart] = field(default_factory=list)
    #: What language data is in the batches; null for other data.
    tokens: Tokens | None = None
    #: What was set while the program trained, in its order; empty where nothing was.
    autopilot: list[ParameterChange] = field(default_factory=list)
    #: Whether the loop has ended or its process is gone; false: read while it ran.
    finished: bool = False
    #: What could not be recorded, in words. Empty is good.
    notes: list[str] = field(default_factory=list)
