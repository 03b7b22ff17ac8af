"""The threads, queues, generators and executors that a line is made of, with or without instruments."""

from __future__ import annotations

import itertools
import queue
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FunctionType
from typing import Any

from line import Line, Stage
from work import body, factor

END = object()

Body = Callable[..., Any]  # of an item, and of the number of the worker


class Instruments:
    """What a pipeline is watched with, where its author would put it; this one watches nothing."""

    def operator(self, _stage: Stage, do: Body) -> Body:
        return do

    def queue(self, capacity: int, _name: str) -> Any:
        return queue.Queue(capacity)


class Service:
    """The times of one stage's items."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self._rng = random.Random(seed)
        self._number = itertools.count()
        self._lock = threading.Lock()
        self._work = body(stage.work)

    def __call__(self, worker: int = 0) -> None:
        stage = self.stage
        with self._lock:
            number = next(self._number)
            seconds = stage.seconds * factor(stage.vary, number, self._rng)
        if stage.worker_times:
            seconds *= stage.worker_times[worker]
        if number == 0 and stage.first_s:
            time.sleep(stage.first_s)
        self._work(seconds)


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A copy of a function as if the user had written it under that name."""
    assert isinstance(function, FunctionType)
    names = {"co_name": name} | ({"co_qualname": name} if sys.version_info >= (3, 11) else {})
    code = function.__code__.replace(**names)  # type: ignore[arg-type]
    copy = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__qualname__ = name
    return copy


def loop_name(stage: Stage) -> str:
    """Of the function around the body: it names the operator where nothing is annotated."""
    return f"run_{stage.name}" if stage.annotated else stage.name


def operator_of(stage: Stage, seed: int, watch: Instruments) -> Body:
    """The stage's body as a function of one item (or a list of them)."""
    service = Service(stage, seed)

    def do(item: Any, worker: int = 0) -> Any:
        service(worker)
        return item

    if not stage.annotated:
        return do
    return watch.operator(stage, do)


class Threads:
    """The stages as threads with bounded queues between them."""

    def __init__(self, line: Line, watch: Instruments) -> None:
        self.line = line
        self._watch = watch
        self.total = line.steps
        for stage in line.stages:
            self.total *= stage.take
        groups: list[list[Stage]] = [[]]
        for stage in line.stages:
            groups[-1].append(stage)
            if not stage.with_next:
                groups.append([])
        self.groups = groups[:-1]
        self.bodies = [
            [operator_of(stage, line.seed + 31 * index, watch) for stage in group]
            for index, group in enumerate(self.groups)
        ]
        self.queues: list[Any] = []

    def start(self) -> Any:
        self.queues = [self._queue(group[-1]) for group in self.groups]
        for index, group in enumerate(self.groups):
            loop = named(self._stage(index) if index else self._source(index), loop_name(group[-1]))
            for worker in range(group[0].workers):
                threading.Thread(target=loop, args=(worker,), daemon=True).start()
        return self.queues[-1]

    def _queue(self, stage: Stage) -> Any:
        if self.line.how == "stdlib_queues":
            return queue.Queue(stage.capacity)
        return self._watch.queue(stage.capacity, stage.queue or f"{stage.name}_out")

    def _source(self, index: int) -> Callable[[int], None]:
        bodies, total, out = self.bodies[index], self.total, self.queues[index]
        numbers = iter(range(total))
        lock = threading.Lock()
        workers = self.groups[index][0].workers
        alive = [workers]

        def source(worker: int) -> None:
            while True:
                with lock:
                    item: Any = next(numbers, END)
                if item is END:
                    break
                for do in bodies:
                    item = do(item, worker)
                out.put(item)
            with lock:
                alive[0] -= 1
                last = alive[0] == 0
            if last:
                out.put(None)

        return source

    def _stage(self, index: int) -> Callable[[int], None]:
        bodies, take = self.bodies[index], self.groups[index][0].take
        lock, alive = threading.Lock(), [self.groups[index][0].workers]
        before, out = self.queues[index - 1], self.queues[index]

        def one(worker: int) -> None:
            while (item := before.get()) is not None:
                for do in bodies:
                    item = do(item, worker)
                out.put(item)
            finish()

        def several(worker: int) -> None:
            batch = []
            while (item := before.get()) is not None:
                batch.append(item)
                if len(batch) < take:
                    continue
                made: Any = batch
                batch = []
                for do in bodies:
                    made = do(made, worker)
                out.put(made)
            finish()

        def finish() -> None:
            with lock:
                alive[0] -= 1
                last = alive[0] == 0
            (out if last else before).put(None)

        return one if take == 1 else several

    def fill(self) -> None:
        """Until the queue before the loop is full."""
        while self.queues[-1].qsize() < self.line.stages[-1].capacity:
            time.sleep(0.01)


class Epochs:
    """An iterable that starts its threads anew for every epoch, as most loaders do."""

    def __init__(self, line: Line, watch: Instruments) -> None:
        self._threads = Threads(line, watch)

    def __iter__(self) -> Iterator[Any]:
        batches = self._threads.start()
        while (batch := batches.get()) is not None:
            yield batch


def generators(line: Line, watch: Instruments) -> Iterator[Any]:
    """A chain of generators (plain ones) and operators, all in the thread that iterates."""
    total = line.steps
    for stage in line.stages:
        total *= stage.take
    items: Iterator[Any] = iter(range(total))
    for index, stage in enumerate(line.stages):
        do = operator_of(stage, line.seed + 31 * index, watch)

        def generate(items: Iterator[Any], do: Any = do, take: int = stage.take) -> Iterator[Any]:
            while group := list(itertools.islice(items, take)):
                yield do(group, 0)

        items = named(generate, loop_name(stage))(items)
    return items


def background(line: Line, watch: Instruments) -> Iterator[Any]:
    """The same chain in a thread of its own, with a queue of `window` batches."""
    ready = watch.queue(line.window, "prefetched")

    def prefetch() -> None:
        for batch in generators(line, watch):
            ready.put(batch)
        ready.put(None)

    threading.Thread(target=prefetch, daemon=True).start()
    return iter(ready.get, None)


def executor_map(line: Line, watch: Instruments) -> Iterator[Any]:
    (stage,) = line.stages
    pool = ThreadPoolExecutor(stage.workers)
    return pool.map(operator_of(stage, line.seed, watch), range(line.steps))


def futures(line: Line, watch: Instruments) -> Iterator[Any]:
    """A sliding window of futures, yielded in order."""
    (stage,) = line.stages
    do = operator_of(stage, line.seed, watch)

    def loader() -> Iterator[Any]:
        pool = ThreadPoolExecutor(stage.workers)
        pending: deque[Future[Any]] = deque()
        for number in range(line.steps):
            pending.append(pool.submit(do, number))
            if len(pending) >= line.window:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    return loader()


def batches_of(line: Line, watch: Instruments) -> Any:
    """What the training loop iterates over, once per epoch; its threads run already."""
    if line.how in ("queues", "stdlib_queues"):
        threads = Threads(line, watch)
        last = threads.start()
        if line.prefilled:
            threads.fill()
        return iter(last.get, None)
    if line.how == "queues_in_iterable":
        return Epochs(line, watch)
    makers = {
        "generators": generators,
        "background": background,
        "executor_map": executor_map,
        "futures": futures,
    }
    return makers[line.how](line, watch)
