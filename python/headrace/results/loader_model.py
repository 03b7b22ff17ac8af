"""How a loader is built and set. Written by tools/figures.py; do not edit."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LoaderStage:
    """Operators that the same workers run, one after the other for each item."""

    #: What the framework calls it.
    name: str = ""
    #: Places in the profile's `operators`, in the order of the data flow.
    operators: list[int] = field(default_factory=list)
    #: How many there are; 0: it runs in the training loop.
    workers: int = 1
    #: loop, thread, process or async.
    runs_in: str = "loop"
    #: shared_queue (whoever is free takes it), in_turn (dealt out to worker 0, 1, 2, ...) or own_shard (each
    #: reads its own part of a stream).
    gets_work: str = "shared_queue"
    #: Whether items leave in the order in which they came.
    ordered: bool = True
    #: The parameter that sets its workers; "": it cannot be done in parallel.
    widened_by: str = ""
    #: The parameter that sets how many threads there are for this stage and others of that pool, where they
    #: are fewer than the stages' workers together; "": its workers are its own.
    pool: str = ""


@dataclass
class LoaderBuffer:
    """Where finished work waits."""

    #: Place in `stages` of the one that fills it.
    from_: int = -1
    #: Place in `stages` of the one that takes from it; -1: the training loop.
    to: int = -1
    #: Items, or batches of a window.
    capacity: int = 0
    #: True: it counts what is in flight from `from` on until `to` has it, and is filled before anything is
    #: asked for. False: a queue between the two.
    is_window: bool = False
    #: Whether the capacity is that of each worker.
    per_worker: bool = False
    #: The parameter that sets it; "" where it is fixed.
    set_by: str = ""


@dataclass
class LoaderDelivery:
    """How finished batches reach the training loop. A stage of -1 means that the loader has no such stage."""

    #: In the order in which they were drawn.
    ordered: bool = True
    #: The stage that decides what goes into a batch, in the loop.
    draws: int = -1
    #: The stage that passes a batch from a worker to the loop.
    hands_over: int = -1
    #: The stage, one thread, that copies a batch to page-locked memory.
    pins: int = -1


@dataclass
class LoaderParameter:
    """A parameter of the framework's loader."""

    #: Its name, as its user writes it.
    name: str = ""
    #: What it is set to, in its own type.
    value: int | bool | str | None = None
    #: The framework's default: a value like that goes without saying.
    usual: int | bool | str | None = None
    #: The values that a text may have.
    choices: list[str] = field(default_factory=list)
    #: The least value that it takes; null: no limit.
    min: float | None = None
    #: The largest value that it takes; null: no limit.
    max: float | None = None
    #: Whether it can be set while the loader runs.
    live: bool = False
    #: Whether the framework refuses or ignores it without workers.
    needs_workers: bool = False
    #: What of the loader it sets: none, workers, window (batches in flight for each worker), capacity, order,
    #: keeps_workers (between epochs), pins, passes_by_name (`choices`: shared memory by descriptor, by name),
    #: executor or copies_ahead (batches are copied to the device while the step runs).
    sets: str = "none"
    #: Place in `stages` of the one that it sets; -1: it is of the whole loader.
    stage: int = -1
    #: Where its user sets it, if not at the loader: `set x in TrainingArguments`.
    set_in: str = ""


@dataclass
class LoaderModel:
    """How a framework's loader is built and set: all that a verdict knows of the framework."""

    #: Name of its library.
    framework: str = ""
    #: In the order of the data flow.
    stages: list[LoaderStage] = field(default_factory=list)
    #: Between them, and before the training loop.
    buffers: list[LoaderBuffer] = field(default_factory=list)
    #: How finished batches reach the loop.
    delivery: LoaderDelivery = field(default_factory=LoaderDelivery)
    #: In the order in which they are shown.
    parameters: list[LoaderParameter] = field(default_factory=list)
    #: What the user's stream must do to give each worker its own part; may be empty.
    shard_advice: str = ""
    #: How the user takes the rows of a batch at once; may be empty.
    rows_advice: str = ""
