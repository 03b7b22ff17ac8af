"""Puts probes into iterators as they are made: the loop's, those of an interleave, those of a process."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.weak_tables import remove_with
from headrace.loaders.grain import probes
from headrace.loaders.grain.graph import (
    INTERLEAVE,
    PROCESS,
    READS,
    THREAD,
    Graph,
    Nested,
    Stage,
    kind_of,
    read_graph,
)
from headrace.record.session import join_run

#: The recorder of the parts of an interleave, by the id of its iterator.
_interleaves: dict[int, tuple[Recorder, int, int, int]] = {}


class Recorder:
    """The operators and queues of one loader, by place. Travels to worker processes without its handles."""

    def __init__(
        self,
        loader: int,
        live_path: str,
        names: dict[tuple[int, int], str],
        queues: dict[int, tuple[str, int, int, bool]],
    ) -> None:
        self.loader = loader
        self.live_path = live_path
        self._names = names
        #: By the stage that fills it: name, capacity, the stage that takes from it, whether it is looked at.
        self._queues = queues
        self._operators: dict[tuple[int, str], _core.OperatorHandle] = {}
        self._followed: dict[int, probes.Level | probes.PolledLevel] = {}
        self._is_worker = False

    def __getstate__(self) -> tuple[Any, ...]:
        return self.loader, self.live_path, self._names, self._queues

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]
        self._is_worker = True

    def operator(self, place: int, index: int, name: str, kind: str) -> _core.OperatorHandle:
        known = self._names.get((place, index), name)
        name = known if known.partition("#")[0] == name else name
        if (place, name) not in self._operators:
            self._operators[place, name] = _core.OperatorHandle(
                name, kind, loader=self.loader, stage=place * _core.PLACES_PER_STAGE + index
            )
        return self._operators[place, name]

    def follow(self, iterator: Any, first: int, takes: int, flat: int = -1) -> None:
        """Record an iterator whose stages are numbered from ``first`` on. takes: the place of what asks it.

        flat: the place of all its nodes, where those were not known.
        """
        asks = Stage()
        graph = read_graph(iterator, asks)
        if asks.operators:
            graph.stages.pop()  # its own stage, which is the last one and has the place `takes`

        def place(stage: Stage) -> int:
            if flat >= 0:
                return takes if stage is asks else flat
            return takes if stage is asks else graph.place(stage, first)

        items: probes.Items = {}
        for stage in (*graph.stages, asks):
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
        for wait in graph.waits:
            if place(wait.stage) >= 0:
                probes.time_wait(wait.node)
        if flat < 0:
            self._follow_buffers(graph, place)
        for nested in graph.nested:
            self._follow_nested(nested, first, place(nested.takes), place(nested.below), flat)

    def _follow_buffers(self, graph: Graph, place: Any) -> None:
        for edge in graph.edges:
            for node in edge.nodes:
                self._follow_buffer(node, place(edge.fills), node is edge.nodes[0], node is edge.nodes[-1])

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
            all_at = flat if flat >= 0 else below if nested.is_flat else -1
            _interleaves[id(node)] = self, first + nested.first, takes, all_at
            remove_with(node, _interleaves, id(node))
            install()
            for part in node._iterators_in_use:  # made for the state of the beginning
                if part is not None:
                    self.follow_part(part, first + nested.first, takes, all_at)
            return
        if node._prefetch_process is None and flat < 0:
            start = WorkerStart(node._worker_init_fn, self.live_path, self, first + nested.first, below)
            node._worker_init_fn = start

    def follow_part(self, iterator: Any, first: int, takes: int, flat: int) -> None:
        """One of the iterators that an interleave reads in turn."""
        self.follow(iterator, first, takes, flat)


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
        try:
            recorder, first, takes, flat = known
            recorder.follow_part(iterator, first, takes, flat)
        except Exception as error:  # the loop must still run
            let_through(error)
            _core.miss(recorder.loader, _core.NO_WORKER_DETAIL)
            warn_once(f"operator detail unavailable: grain is not as its adapter expects ({error!r})")
        if start_prefetch:
            iterator.start_prefetch()
        if starting_state is not None:
            iterator.set_state(starting_state)
        return iterator

    made.headrace = True  # type: ignore[attr-defined]
    module._add_prefetch_and_make_iterator = made


class WorkerStart:
    """Called in the worker process after the user's own function: records the iterator that it makes.

    Never raises anything of its own.
    """

    def __init__(
        self, users: Callable[[], None] | None, live_path: str, recorder: Recorder, first: int, takes: int
    ) -> None:
        self.users = users
        self.live_path = live_path
        self.recorder = recorder
        #: The place at which the stages of the process begin, and that of its own thread.
        self.first = first
        self.takes = takes

    def __call__(self) -> None:
        if self.users is not None:
            self.users()
        if not join_run(self.live_path):
            return
        try:
            self._follow_first_iterator()
        except Exception as error:
            let_through(error)
            _core.miss(self.recorder.loader, _core.NO_WORKER_DETAIL)

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
                try:
                    self.recorder.follow(iterator, self.first, self.takes)
                except Exception as error:
                    let_through(error)
                    _core.miss(self.recorder.loader, _core.NO_WORKER_DETAIL)
            return iterator

        kind.__iter__ = followed
