"""MindSpore's datasets, live: Python functions timed, queue levels from MindData's monitor, GetNext exact."""

from __future__ import annotations

import copy
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from time import perf_counter_ns, thread_time_ns
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment, guarded, guarded_detail, record_detail, subclass
from headrace.loaders.kit.inside_next import watch_thread
from headrace.loaders.kit.names import object_name
from headrace.loaders.mindspore import monitor, records
from headrace.loaders.mindspore.records import Record, time_stage
from headrace.loaders.mindspore.tree import Tree, is_user_function
from headrace.record.session import bare_iterator, in_its_phase, not_recorded, set_in_trial


class MindSporeAdapter(Adapter):
    """A ``Dataset``, which goes on being one, or what its ``create_..._iterator`` returns."""

    libraries = ("mindspore",)
    classes = ("mindspore.dataset.engine.datasets:Dataset", "mindspore.dataset.engine.iterators:Iterator")
    keeps_class = True

    def name(self, obj: object) -> str:
        dataset = getattr(obj, "dataset", obj)
        return type(dataset).__name__

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        # Its iterators attach: each has a copy of the dataset with workers of its own.
        return Attachment(())

    def as_instance(self, obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
        """A shallow copy of a dataset, whose iterators are recorded; an iterator itself, recorded now."""
        _patch()
        record = Record(handle)
        if hasattr(obj, "create_dict_iterator"):
            wrapped = copy.copy(obj)
            wrapped.__class__ = subclass(type(obj), methods)
            records.register(wrapped, record)
            return wrapped
        with guarded_detail(record.handle, "MindSpore"):
            record.take(obj.dataset, _time_running)
        _make_recorded(obj, record, None)
        obj.__class__ = subclass(type(obj), methods)
        return obj


#: A thread that fetches a batch which is there is off the CPU for less than that.
_READY_NS = 200_000
#: The iterator that this thread is making, until its copy of the dataset has been seen.
_making = threading.local()


class _Consumer:
    """In the place of MindData's end of the pipeline: how long did it wait for the batch?"""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.waited_ns = 0

    def _timed(self, get_next: Callable[[], Any]) -> Any:
        began, computed = perf_counter_ns(), thread_time_ns()
        try:
            return get_next()
        finally:
            # Copying a large batch is work, not waiting for it.
            self.waited_ns = perf_counter_ns() - began - (thread_time_ns() - computed)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._consumer, name)
        return functools.partial(self._timed, found) if name in ("GetNextAsMap", "GetNextAsList") else found


class _Loop:
    """What the iterators of the report iterate over: the iterator's own ``__next__``."""

    def __init__(self, iterator: Any, watch: monitor.Monitor | None) -> None:
        self._iterator = weakref.ref(iterator)
        self._next = iterator._headrace_next
        self._watch = watch
        self._consumer = getattr(iterator, "_iterator", None)
        self._asked = False

    def ready(self) -> bool | None:
        """Before a GetNext nobody knows; after it, its length tells."""
        if not isinstance(self._consumer, _Consumer):
            return False
        self._asked = not self._asked
        return None if self._asked else self._consumer.waited_ns < _READY_NS

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return self._next(self._iterator())
        except StopIteration:
            if self._watch is not None:
                self._watch.collect()
            raise


def _begin(self: Any) -> Iterator[Any]:
    record, watch = self._headrace_record, self._headrace_watch
    record_detail(record.handle, "MindSpore", record.begin_loop)
    if watch is not None:
        watch.loop_begins()
    loop = _Loop(self, watch)
    timed = _core.TimedIterator(record.handle, loop, None, loop.ready)
    watch_thread(record.handle)
    phased: Iterator[Any] = in_its_phase(timed, record.handle, self, bare_iterator)
    return phased


def _iter(self: Any) -> Any:
    self._headrace_loop = _begin(self)
    return self


def _next(self: Any) -> Any:
    loop = self._headrace_loop
    if loop is None:
        loop = self._headrace_loop = _begin(self)
    try:
        return next(loop)
    except StopIteration:
        self._headrace_loop = None
        raise


@functools.cache
def _recorded_class(base: type) -> Any:
    return subclass(base, {"__iter__": _iter, "__next__": _next})


def _make_recorded(iterator: Any, record: Record, watch: monitor.Monitor | None) -> None:
    iterator._headrace_record = record
    iterator._headrace_watch = watch
    iterator._headrace_loop = None
    iterator._headrace_next = type(iterator).__next__
    consumer = getattr(iterator, "_iterator", None)
    # With a converting thread in between, GetNext does not wait for the pipeline alone.
    if consumer is not None and not getattr(iterator, "parallel_convert", False):
        iterator._iterator = _Consumer(consumer)
    base: Any = type(iterator)
    iterator.__class__ = _recorded_class(base)
    if watch is not None:
        weakref.finalize(iterator, watch.end)


def _patch() -> None:
    """MindSpore's iterators ask, when they are made, whether they are recorded."""
    iterators: Any = sys.modules["mindspore.dataset.engine.iterators"]
    datasets: Any = sys.modules["mindspore.dataset.engine.datasets"]
    make, parse = iterators.Iterator.__init__, datasets.Dataset.parse_tree
    if isinstance(parse, _core.HookedCall):
        return

    @functools.wraps(make)
    def recorded_init(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        record = records.record_of(dataset)
        if record is None:
            make(self, dataset, *args, **kwargs)
        else:
            _make_iterator(self, record, dataset, lambda: make(self, dataset, *args, **kwargs))

    def parses(self: Any, getter_mode: bool = False) -> None:
        seen = getattr(_making, "seen", None)
        if seen is not None and not getter_mode:
            _making.seen = None
            seen(self)

    iterators.Iterator.__init__ = recorded_init
    datasets.Dataset.parse_tree = _core.HookedCall(parse, parses)


def _make_iterator(iterator: Any, record: Record, dataset: Any, make: Callable[[], None]) -> None:
    trees: list[Tree] = []

    def seen(root: Any) -> None:
        with guarded_detail(record.handle, "MindSpore"):
            set_in_trial(lambda: Tree(root).graph.setters, record.handle.name)
            trees.append(record.take(root, time_stage))

    watch = None
    with guarded():
        watch = monitor.prepare(Tree(dataset))
    _making.seen = seen
    try:
        make()
    except BaseException:
        if watch is not None:
            watch.end()
        raise
    finally:
        _making.seen = None
    with guarded(not_recorded):
        if watch is not None and trees:
            watch.begin(trees[0], record.queues(trees[0]))
        _make_recorded(iterator, record, watch)


def record_every_loader() -> None:
    """From now on each iterator over a dataset in this process is recorded (``headrace run``)."""
    records.record_all()
    _patch()


def _time_running(stage: Any, place: int, operators: Any) -> None:
    """In an iterator that exists, only functions inside objects of MindSpore's can be timed."""
    number = 0
    for operation in getattr(stage.node, "operations", None) or []:
        function = getattr(operation, "transform", None)
        if type(operation).__name__ == "FuncWrapper" and function is not None and is_user_function(function):
            name = stage.name if number == 0 else object_name(function)
            operation.transform = _core.TimedCallable(function, operators(name, "map", place, number))
            number += 1
    if stage.kind == "source":
        warn_once("wrap the dataset of MindSpore, not its iterator: the time of its source is not recorded")


libraries.adapters.append(MindSporeAdapter())

RECORDED_AFTER = {"mindspore.dataset": "engine"}
