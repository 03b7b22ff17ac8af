"""The fields of a report as plain typed objects; names and meanings are those of the JSON document."""

from __future__ import annotations

import types
import typing
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

D = TypeVar("D")


@dataclass
class Latency:
    count: int = 0
    mean_s: float = 0.0
    p50_s: float = 0.0
    p90_s: float = 0.0
    p99_s: float = 0.0
    max_s: float = 0.0


@dataclass
class States:
    """Shares of the time of an operator's workers; sum 1."""

    busy: float = 0.0
    blocked_in: float = 0.0
    blocked_out: float = 0.0
    idle: float = 0.0


@dataclass
class ServiceSample:
    index: int = 0
    wall_s: float = 0.0
    cpu_s: float | None = None


@dataclass
class WorkerProfile:
    name: str = ""
    pid: int = 0
    tid: int = 0
    alive: bool = False
    items: int = 0
    failures: int = 0
    busy_s: float = 0.0
    cpu_s: float | None = None
    run_queue_wait_s: float | None = None
    states: States = field(default_factory=States)
    service: Latency = field(default_factory=Latency)
    sequence: list[ServiceSample] = field(default_factory=list)
    slowest: list[ServiceSample] = field(default_factory=list)
    worker_id: int | None = None
    shard: str = ""


@dataclass
class Knob:
    parameter: str = ""
    value: float = 0.0
    min: float | None = None
    max: float | None = None
    live: bool = False
    #: What of the loader it sets, as in LoaderParameter.
    sets: str = "none"


@dataclass
class LoaderParameter:
    """A parameter of the framework's, as its user writes it.

    ``usual``: the framework's default. ``sets``: none, workers, window (batches in flight for each worker),
    capacity, order, keeps_workers, pins, passes_by_name (``choices``: by descriptor, by name) or executor.
    ``needs_workers``: the framework refuses or ignores it without workers. ``set_in``: where its user sets
    it, if not at the loader.
    """

    name: str = ""
    value: int | bool | str | None = None
    usual: int | bool | str | None = None
    choices: list[str] = field(default_factory=list)
    min: float | None = None
    max: float | None = None
    live: bool = False
    needs_workers: bool = False
    sets: str = "none"
    set_in: str = ""


@dataclass
class LoaderStage:
    """Operators that the same workers run, one after the other for each item.

    ``operators``: indices into the profile's operators. ``workers``: 0 where it runs in the training loop.
    ``runs_in``: loop, thread, process or async. ``gets_work``: shared_queue, in_turn or own_shard.
    ``widened_by``: the parameter that sets its workers; empty where it cannot be done in parallel.
    """

    name: str = ""
    operators: list[int] = field(default_factory=list)
    workers: int = 1
    runs_in: str = "loop"
    gets_work: str = "shared_queue"
    ordered: bool = True
    widened_by: str = ""


@dataclass
class LoaderBuffer:
    """Where finished work waits between two stages, by index (to -1: the training loop).

    ``is_window``: it counts what is in flight from the first stage on, and is filled before anything is
    asked for. ``per_worker``: the capacity is that of each worker.
    """

    from_: int = -1
    to: int = -1
    capacity: int = 0
    is_window: bool = False
    per_worker: bool = False
    set_by: str = ""


@dataclass
class LoaderDelivery:
    """How finished batches reach the loop. Stages that draw, hand over and pin, by index; -1: none."""

    ordered: bool = True
    draws: int = -1
    hands_over: int = -1
    pins: int = -1


@dataclass
class LoaderModel:
    """How a framework's loader is built and set: all that a verdict knows of the framework.

    ``shard_advice``: what the user's stream must do to give each worker its own part.
    """

    framework: str = ""
    stages: list[LoaderStage] = field(default_factory=list)
    buffers: list[LoaderBuffer] = field(default_factory=list)
    delivery: LoaderDelivery = field(default_factory=LoaderDelivery)
    parameters: list[LoaderParameter] = field(default_factory=list)
    shard_advice: str = ""


@dataclass
class Transfer:
    """What an operator copied to a device in the steady loop; ``bytes_per_s`` while it copied."""

    copies: int = 0
    bytes: int = 0
    bytes_per_s: float | None = None
    pinned_share: float | None = None
    copy_s: float = 0.0
    buffer_wait_s: float = 0.0


@dataclass
class FunctionShare:
    """A function's own part of an operator's time, without what it calls, from a few batches."""

    name: str = ""
    share: float = 0.0


@dataclass
class Operator:
    name: str = ""
    kind: str = ""
    workers: int = 1
    items: int = 0
    items_per_batch: float = 0.0
    busy_s: float = 0.0
    cpu_s: float | None = None
    demand_s: float = 0.0
    service: Latency = field(default_factory=Latency)
    states: States = field(default_factory=States)
    failures: int = 0
    run_queue_wait_s: float | None = None
    segment: int | None = None
    in_sink: bool = False
    executor: str = ""
    fidelity: str = ""
    transfer: Transfer | None = None
    knobs: list[Knob] = field(default_factory=list)
    functions: list[FunctionShare] = field(default_factory=list)
    per_worker: list[WorkerProfile] = field(default_factory=list)


@dataclass
class Queue:
    name: str = ""
    from_: str = ""
    to: str = ""
    capacity: int = 0
    unit: str = "items"
    occupancy: list[float] = field(default_factory=list)
    levels_per_bin: int = 1
    mean: float = 0.0
    empty_share: float = 0.0
    full_share: float = 0.0
    puts: int = 0
    gets: int = 0
    put_wait_s: float = 0.0
    get_wait_s: float = 0.0
    fidelity: str = ""
    knobs: list[Knob] = field(default_factory=list)


@dataclass
class LedgerRow:
    what: str = ""
    operator: str | None = None
    seconds: float = 0.0
    share: float = 0.0


@dataclass
class Stall:
    at_s: float = 0.0
    wait_s: float = 0.0
    step: int = 0


@dataclass
class StepSample:
    wait_s: float = 0.0
    compute_s: float = 0.0
    before_forward_s: float | None = None
    tail_s: float | None = None


@dataclass
class MarkedSteps:
    """Steps in which `trace_steps` or `step` told where forward began; times are means over ``steps``."""

    steps: int = 0
    of_steps: int = 0
    tail_steps: int = 0
    iteration_gap_s: float = 0.0
    forward_backward_s: float = 0.0
    tail_s: float = 0.0


@dataclass
class Startup:
    first_batch_s: float = 0.0
    worker_start_s: float = 0.0
    later_epochs_s: float = 0.0


@dataclass
class Sink:
    steps: int = 0
    step_s: float = 0.0
    compute_s: float = 0.0
    compute_cpu_s: float | None = None
    quiet_compute_s: float | None = None
    quiet_steps: int = 0
    batch_bytes: int | None = None
    getnext_wait: Latency = field(default_factory=Latency)
    wait_share: float = 0.0
    worker_start_wait_s: float = 0.0
    starved_share: float = 0.0
    handoff_floor_s: float = 0.0
    ready_share: float = 0.0
    longest_waits: list[Stall] = field(default_factory=list)
    sequence: list[StepSample] = field(default_factory=list)
    marked: MarkedSteps | None = None


@dataclass
class WindowOperator:
    busy_share: float = 0.0
    demand_s: float = 0.0
    items: int = 0


@dataclass
class WindowQueue:
    mean: float = 0.0
    empty_share: float = 0.0
    full_share: float = 0.0


@dataclass
class WindowHost:
    cpu_share: float | None = None
    foreign_cpu_share: float | None = None
    throttled_share: float | None = None


@dataclass
class Window:
    start_s: float = 0.0
    end_s: float = 0.0
    steps: int = 0
    wait_s: float = 0.0
    starved_s: float = 0.0
    compute_s: float = 0.0
    operators: list[WindowOperator] = field(default_factory=list)
    queues: list[WindowQueue] = field(default_factory=list)
    host: WindowHost = field(default_factory=WindowHost)


@dataclass
class Host:
    cores: int = 0
    cpu_share: float | None = None
    process_cpu_cores: float | None = None
    foreign_cpu_share: float | None = None
    foreign_contention_share: float | None = None
    throttled_share: float | None = None
    run_queue_wait_share: float | None = None
    io_pressure_share: float | None = None
    gil_share: float | None = None
    memory: int | None = None


@dataclass
class Handoff:
    """What passing batches from worker processes costs: means per batch, except the counts."""

    batches: int = 0
    message_bytes: float = 0.0
    tensors: float = 0.0
    pickle_s: float = 0.0
    pickle_cpu_s: float = 0.0
    send_s: float = 0.0
    receive_s: float = 0.0
    receive_cpu_s: float = 0.0
    unused_batches: int = 0


@dataclass
class HandoffEstimate:
    """What passing a batch from a worker process would cost a loader that has none, from a sample."""

    message_bytes: float = 0.0
    tensors: float = 0.0
    pickle_cpu_s: float = 0.0


@dataclass
class RankFigures:
    """The same loader in another rank of the run."""

    rank: int = 0
    steps: int = 0
    step_s: float = 0.0
    compute_s: float = 0.0
    wait_share: float = 0.0
    starved_share: float = 0.0
    demand_s: float = 0.0
    operator: str = ""


@dataclass
class DeviceIdleCause:
    """A part of the time in which a device computed nothing."""

    cause: str = ""
    idle_s: float = 0.0


@dataclass
class DeviceStep:
    """A step of a device trace. A part that is not known is None, and the one to its left contains it."""

    step: int = 0
    iteration_gap_s: float | None = None
    forward_backward_s: float | None = None
    tail_s: float | None = None
    total_s: float = 0.0
    communication_s: float = 0.0
    communication_overlap_s: float = 0.0


@dataclass
class DeviceSteps:
    """The steps of a device trace; times are means over ``steps``, ``sequence`` has the last 512."""

    steps: int = 0
    of_steps: int = 0
    tail_steps: int = 0
    iteration_gap_s: float = 0.0
    forward_backward_s: float = 0.0
    tail_s: float = 0.0
    communication_s: float = 0.0
    communication_overlap_s: float = 0.0
    fp_point: str = ""
    bp_point: str = ""
    sequence: list[DeviceStep] = field(default_factory=list)


@dataclass
class DeviceProfile:
    """What a device did while the loop ran, from a trace that was laid beside the run."""

    window_s: float = 0.0
    idle_s: float = 0.0
    causes: list[DeviceIdleCause] = field(default_factory=list)
    waits_from: str = ""
    clock_error_s: float | None = None
    rank: int | None = None
    steps: DeviceSteps | None = None
    step_notes: list[str] = field(default_factory=list)


@dataclass
class Profile:
    loader: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    model: LoaderModel | None = None
    rank: int = 0
    elapsed_s: float = 0.0
    epochs: int = 0
    startup: Startup = field(default_factory=Startup)
    sink: Sink = field(default_factory=Sink)
    operators: list[Operator] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    stall_ledger: list[LedgerRow] = field(default_factory=list)
    handoff: Handoff | None = None
    handoff_estimate: HandoffEstimate | None = None
    windows: list[Window] = field(default_factory=list)
    ranks: list[RankFigures] = field(default_factory=list)
    host: Host = field(default_factory=Host)
    device: DeviceProfile | None = None
    finished: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass
class Evidence:
    rule: str = ""
    says: str = ""
    figures: dict[str, float] = field(default_factory=dict)


@dataclass
class Advice:
    parameter: str | None = None
    #: In the parameter's own type: ``DataLoader(num_workers=advice.to)``.
    from_: int | bool | str | None = None
    to: int | bool | str | None = None
    text: str = ""
    #: Lines that make the change, where the loader has no such parameter.
    code: str | None = None
    predicted_step_s: float | None = None
    low: float | None = None
    high: float | None = None
    speedup: float | None = None
    memory_bytes: float | None = None
    after: list[str] = field(default_factory=list)


@dataclass
class VerdictWindow:
    start_s: float = 0.0
    end_s: float = 0.0
    kind: str = ""
    operator: str | None = None


@dataclass
class Diagnosis:
    kind: str = "undetermined"
    operator: str | None = None
    cause: str | None = None
    confidence: float = 0.0
    share_of_step: float = 0.0
    reason: str = ""
    summary: str = ""
    headroom_step_s: float | None = None
    evidence: list[Evidence] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    next_bottleneck: str | None = None
    windows: list[VerdictWindow] = field(default_factory=list)


@dataclass
class StepTime:
    """The parts of a step. Of a device trace also its number there, and the time of its collectives.

    ``communication_overlap_s``: the part of the communication that ran under computation.
    """

    step: int | None = None
    iteration_gap_s: float | None = None
    forward_backward_s: float | None = None
    tail_s: float | None = None
    total_s: float | None = None
    communication_s: float | None = None
    communication_overlap_s: float | None = None


@dataclass
class Steps:
    """The step trace: ``source`` is "device_trace", "hooks" or "loader".

    ``unknown`` says what that cannot know, and why a trace that is there is not the source. The average is
    over ``steps`` of ``of_steps``. A part that is not known is None, and the one to its left contains it.
    """

    source: str = ""
    unknown: str = ""
    steps: int = 0
    of_steps: int = 0
    average: StepTime = field(default_factory=StepTime)
    per_step: list[StepTime] = field(default_factory=list, repr=False)


def as_json(part: Any) -> dict[str, Any]:
    """What `build` makes ``part`` of again; fields that have their defaults are left out."""
    empty = type(part)()
    written: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if value == getattr(empty, one.name):
            continue
        if isinstance(value, list):
            value = [as_json(item) if hasattr(item, "__dataclass_fields__") else item for item in value]
        elif hasattr(value, "__dataclass_fields__"):
            value = as_json(value)
        written[one.name.rstrip("_")] = value
    return written


def build(cls: type[D], data: Any) -> D:
    """An object of ``cls`` from plain data: missing or null keeps the default, what is unknown is ignored."""
    hints = _hints(cls)
    values: dict[str, Any] = {}
    for one in fields(cls):  # type: ignore[arg-type]
        key = one.name.rstrip("_")
        if not isinstance(data, dict) or key not in data:
            continue
        value = data[key]
        has_default = one.default is not MISSING
        if value is None and has_default and one.default is not None:
            continue
        values[one.name] = _convert(hints[one.name], value)
    return cls(**values)


_hint_cache: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _hint_cache:
        _hint_cache[cls] = typing.get_type_hints(cls)
    return _hint_cache[cls]


def _convert(hint: Any, value: Any) -> Any:
    origin = typing.get_origin(hint)
    if value is None:
        return None
    if origin is list:
        (item,) = typing.get_args(hint)
        return [_convert(item, one) for one in value]
    if origin in (types.UnionType, typing.Union):
        inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
        return _convert(inner[0], value)
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return build(hint, value)
    return value
