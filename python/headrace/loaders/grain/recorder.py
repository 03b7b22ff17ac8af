"""Puts probes into iterators as they are made: the loop's, those of an interleave, those of a process."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.grain import probes
from headrace.loaders.grain.graph import (
    INTERLEAVE,
    PROCESS,
    READS,
    THREAD,
    Nested,
    Stage,
    kind_of,
    read_graph,
)
from headrace.loaders.kit.base import guarded_detail
from headrace.record.operator import readable
from headrace.record.session import join_run

#: The recorder of the parts of an interleave, by the id of its iterator, and what `Recorder.follow` takes.
_interleaves: dict[int, tuple[Recorder, int, int, int]] = {}


class Recorder:
    """The operators and queues of one loader, by place. Travels to worker processes without its handles."""

    def __init__(
        self,
        loader: int,
        live_path: str,
        names: dict[int, str],
        queues: dict[int, tuple[str, int, int, bool]],
        is_worker: bool = False,
    ) -> None:
        self.loader = loader
        self.live_path = live_path
        #: By the number of an operator.
        self._names = names
        #: By the stage that fills it: name, capacity, the stage that takes from it, whether it is looked at.
        self._queues = queues
        self._operators: dict[tuple[int, str], _core.OperatorHandle] = {}
        self._followed: dict[int, probes.Level | probes.PolledLevel] = {}
        self._is_worker = is_worker

    def __reduce__(self) -> tuple[Any, ...]:
        return Recorder, (self.loader, self.live_path, self._names, self._queues, True)

    def operator(self, place: int, index: int, name: str, kind: str) -> _core.OperatorHandle:
        number = place * _core.PLACES_PER_STAGE + index
        name = readable(name).partition("#")[0]  # in the whole loader it may have another number
        known = self._names.get(number, name)
        name = known if known.partition("#")[0] == name else name
        if (place, name) not in self._operators:
            made = _core.OperatorHandle(name, kind, loader=self.loader, stage=number)
            self._operators[place, name] = made
        return self._operators[place, name]

    def follow(self, iterator: Any, first: int, takes: int, flat: int = -1) -> None:
        """Record an iterator whose stages are numbered from ``first`` on. takes: the place of what asks it.

        flat: the place of all its nodes, where those were not known.
        """
        asks = Stage()
        graph = read_graph(iterator, asks)

        def place(stage: Any) -> int:
            if stage is asks:
                return takes
            return flat if flat >= 0 else first + stage.place

        items: probes.Items = {}
        each: Any
        for stage in (*graph.parts, asks):
            for index, each in enumerate(stage.operators):
                if not each.is_here:
                    continue
                operator = self.operator(place(stage), index, each.name, each.kind)
                if hasattr(type(each.node), "__next__"):
                    probes.time_iterator(each.node, operator)
                else:
                    items[id(each.node)] = probes.timed_item(each.node, operator)
        for node in graph.reads:
            probes.time_reading(node, items)
        for node, stage in graph.waits:
            if place(stage) >= 0:
                probes.time_wait(node)
        if flat < 0:
            for buffer in graph.between:
                for node in buffer.owners:
                    ends = node is buffer.owners[0], node is buffer.owners[-1]
                    self._follow_buffer(node, place(buffer.fills), *ends)
        for nested in graph.nested:
            self._follow_nested(nested, first + nested.first, place(nested.takes), place(nested.below), flat)

    def _follow_buffer(self, node: Any, fills: int, is_first: bool, is_last: bool) -> None:
        if fills not in self._queues:
            return
        name, capacity, takes, is_looked_at = self._queues[fills]
        kind = kind_of(node)
        worker, workers = _worker_of(node)
        if kind == INTERLEAVE or (self._is_worker and worker > 0):
            return  # of several processes the first one's buffers are shown
        followed = self._followed.get(fills)
        if followed is None:
            handle = _core.QueueHandle(name, capacity, self.loader, fills, takes)
            followed = probes.PolledLevel(handle) if is_looked_at else probes.Level(handle, workers)
            self._followed[fills] = followed
        if isinstance(followed, probes.PolledLevel):
            if kind in (PROCESS, THREAD):
                followed.follow(node)
        elif kind == READS:
            probes.follow_reads(node, followed, is_last)
        elif kind == THREAD:
            probes.follow_thread(node, followed, is_first)

    def _follow_nested(self, nested: Nested, first: int, takes: int, below: int, flat: int) -> None:
        node = nested.node
        if kind_of(node) == INTERLEAVE:
            place = first, takes, flat if flat >= 0 else below if nested.is_flat else -1
            _interleaves[id(node)] = self, *place
            remove_with(node, _interleaves, id(node))
            install()
            for part in node._iterators_in_use:  # made for the state of the beginning
                if part is not None:
                    self.follow(part, *place)
        elif node._prefetch_process is None and flat < 0:
            node._worker_init_fn = WorkerStart(node._worker_init_fn, self, first, below)


def _worker_of(node: Any) -> tuple[int, int]:
    """The number of the worker process that it is in, and how many there are."""
    context = getattr(getattr(node, "_ctx", None), "mp_context", None)
    return int(getattr(context, "process_index", 0)), max(1, int(getattr(context, "process_count", 1)))


def install() -> None:
    """Interleaves make the iterators of their parts in threads: each is recorded before it starts."""
    module: Any = sys.modules["grain._src.python.dataset.transformations.interleave"]
    make = module._add_prefetch_and_make_iterator
    if getattr(make, "headrace", False):
        return

    def made(ds: Any, interleave_iterator: Any, start_prefetch: bool, starting_state: Any = None) -> Any:
        known = _interleaves.get(id(interleave_iterator()))
        if known is None:
            return make(ds, interleave_iterator, start_prefetch, starting_state)
        iterator = make(ds, interleave_iterator, False)
        recorder, *place = known
        with guarded_detail(recorder.loader, "grain", _core.NO_WORKER_DETAIL):
            recorder.follow(iterator, *place)
        if start_prefetch:
            iterator.start_prefetch()
        if starting_state is not None:
            iterator.set_state(starting_state)
        return iterator

    made.headrace = True  # type: ignore[attr-defined]
    module._add_prefetch_and_make_iterator = made


class WorkerStart(NamedTuple):
    """Called in the worker process after the user's own function: records the iterator that it makes.

    Never raises anything of its own.
    """

    users: Callable[[], None] | None
    recorder: Recorder
    #: The place at which the stages of the process begin, and that of its own thread.
    first: int
    takes: int

    def __call__(self) -> None:
        if self.users is not None:
            self.users()
        if join_run(self.recorder.live_path):
            with guarded_detail(self.recorder.loader, gap=_core.NO_WORKER_DETAIL):
                self._follow_first_iterator()

    def _follow_first_iterator(self) -> None:
        kind: Any = sys.modules["grain._src.python.dataset.dataset"].WithOptionsIterDataset
        make = kind.__iter__
        depth = [0]

        @functools.wraps(make)
        def followed(dataset: Any) -> Any:
            depth[0] += 1
            try:
                iterator = make(dataset)
            finally:
                depth[0] -= 1
            if depth[0] == 0:  # the outermost one: what the process takes from
                kind.__iter__ = make
                with guarded_detail(self.recorder.loader, gap=_core.NO_WORKER_DETAIL):
                    self.recorder.follow(iterator, self.first, self.takes)
            return iterator

        kind.__iter__ = followed
