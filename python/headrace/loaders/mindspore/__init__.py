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
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.inside_next import watch_thread
from headrace.loaders.kit.names import object_name
from headrace.loaders.mindspore import monitor, records
from headrace.loaders.mindspore.records import Record, time_stage
from headrace.loaders.mindspore.tree import Tree, graph_of, is_user_function
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
        return as_instance(obj, handle, methods)


#: A thread that fetches a batch which is there is off the CPU for less than that.
_READY_NS = 200_000
#: The iterator that this thread is making, until its copy of the dataset has been seen.
_making = threading.local()


class _Consumer:
    """In the place of MindData's end of the pipeline: how long did it wait for the batch?"""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self.waited_ns = 0

    def GetNextAsMap(self) -> Any:  # noqa: N802
        return self._timed(self._consumer.GetNextAsMap)

    def GetNextAsList(self) -> Any:  # noqa: N802
        return self._timed(self._consumer.GetNextAsList)

    def _timed(self, get_next: Callable[[], Any]) -> Any:
        began, computed = perf_counter_ns(), thread_time_ns()
        try:
            return get_next()
        finally:
            # Copying a large batch is work, not waiting for it.
            self.waited_ns = perf_counter_ns() - began - (thread_time_ns() - computed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)


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
    try:
        record.begin_loop(record.handle)
    except Exception as error:  # the loop must still run
        let_through(error)
        record.unavailable(error)
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
def _recorded_class(base: type) -> type:
    return _with(base, {"__iter__": _iter, "__next__": _next})


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
    if getattr(make, "headrace", False):
        return

    @functools.wraps(make)
    def recorded_init(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        record = records.record_of(dataset)
        if record is None:
            make(self, dataset, *args, **kwargs)
        else:
            _make_iterator(self, record, dataset, lambda: make(self, dataset, *args, **kwargs))

    @functools.wraps(parse)
    def seen_parse_tree(self: Any, getter_mode: bool = False) -> Any:
        seen = getattr(_making, "seen", None)
        if seen is not None and not getter_mode:
            _making.seen = None
            seen(self)
        return parse(self, getter_mode)

    recorded_init.headrace = True  # type: ignore[attr-defined]
    iterators.Iterator.__init__ = recorded_init
    datasets.Dataset.parse_tree = seen_parse_tree


def _make_iterator(iterator: Any, record: Record, dataset: Any, make: Callable[[], None]) -> None:
    trees: list[Tree] = []

    def seen(root: Any) -> None:
        try:
            set_in_trial(lambda: graph_of(Tree(root)).setters, record.handle.name)
            trees.append(record.take(root, time_stage))
        except Exception as error:  # the pipeline must still run
            let_through(error)
            record.unavailable(error)

    watch = None
    try:
        watch = monitor.prepare(Tree(dataset))
    except Exception as error:
        let_through(error)
    _making.seen = seen
    try:
        make()
    except BaseException:
        if watch is not None:
            watch.end()
        raise
    finally:
        _making.seen = None
    try:
        if watch is not None and trees:
            watch.begin(trees[0], record.queues(trees[0]))
        _make_recorded(iterator, record, watch)
    except Exception as error:
        let_through(error)
        not_recorded(error)


def record_every_loader() -> None:
    """From now on each iterator over a dataset in this process is recorded (``headrace run``)."""
    records.record_all()
    _patch()


def as_instance(obj: Any, handle: _core.LoaderHandle, methods: dict[str, Any]) -> Any:
    """A shallow copy of a dataset whose iterators are recorded; an iterator itself, recorded from now on."""
    _patch()
    record = Record(handle)
    if hasattr(obj, "create_dict_iterator"):
        wrapped = copy.copy(obj)
        wrapped.__class__ = _with(type(obj), methods)
        records.register(wrapped, record)
        return wrapped
    try:
        record.take(obj.dataset, _time_running)
    except Exception as error:
        let_through(error)
        record.unavailable(error)
    _make_recorded(obj, record, None)
    obj.__class__ = _with(type(obj), methods)
    return obj


def _with(base: type, methods: dict[str, Any]) -> type:
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), names | methods)


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

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = {"mindspore.dataset": "engine"}
