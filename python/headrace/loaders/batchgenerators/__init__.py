"""batchgenerators' augmenters, which nnU-Net trains with: worker processes, each with its own data loader.

Recorded are the workers as they start, the augmenter's queues, and the thread between them. A `Producer`
makes a batch in a worker process, with the data loader and the transforms as operators.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.own_attributes import own_attribute
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit import every_loop, libraries
from headrace.loaders.kit.base import Adapter, Attachment, classes_of, guarded_detail
from headrace.loaders.kit.graph import Graph
from headrace.loaders.kit.names import object_name
from headrace.loaders.kit.probes import follow_levels
from headrace.loaders.torch_dataloader.operators import Plan
from headrace.record.session import join_run
from headrace.results.loader_model import LoaderModel

#: Stages of the augmenter's model.
ORDER, MAKES, HANDS_OVER = range(3)


class Producer:
    """One for each augmenter, a copy in each worker process. Reaches the worker by fork or by pickle."""

    def __init__(self, generator: Any, transform: Any, live_path: str, loader: int) -> None:
        self.generator = generator
        self.transform = transform
        self._live_path = live_path
        self._loader = loader

    def set_thread_id(self, number: int) -> None:
        """The worker begins."""
        self.generator.set_thread_id(number)
        if join_run(self._live_path):
            with guarded_detail(self._loader, gap=_core.NO_WORKER_DETAIL):
                self.record(names_functions=number == 0)

    def record(self, names_functions: bool) -> list[_core.OperatorHandle]:
        """Times what makes a batch from now on. Returns its operators."""
        walk = Plan(self._loader, "num_processes")
        walk.visit_dataset(self.generator)
        source = walk.operator(object_name(self.generator), "source", _core.STAGE_DATASET)
        # An infinite iterator that asks the data loader: the end of an epoch is not the end of the iterator.
        asking: Any = map(next, itertools.repeat(self.generator))
        walk.add(None, "generator", self.generator, lambda: _core.OperatorIterator(asking, source))
        if self.transform is not None and not walk.visit_chain(self.transform):
            walk.time_calls(self.transform)
        self.__dict__["fetch"] = walk.timed(self, names_functions)
        return walk.operators

    def __next__(self) -> Any:
        return self.fetch(None)

    def fetch(self, _: None) -> Any:
        """A batch."""
        item = next(self.generator)
        return item if self.transform is None else self.transform(**item)


class Sizes(NamedTuple):
    """How many batches wait in front of the thread that hands them over, and behind it."""

    made: int
    received: int


def cached_name(augmenter: Any) -> str:
    """The parameter that sets the sizes of its queues."""
    return "num_cached" if hasattr(augmenter, "num_cached") else "num_cached_per_queue"


def _keeps_order(augmenter: Any) -> bool:
    """A queue for each worker, from which batches are taken in turn."""
    return cached_name(augmenter) == "num_cached_per_queue"


def sizes_of(augmenter: Any) -> Sizes:
    cached, workers = int(getattr(augmenter, cached_name(augmenter))), int(augmenter.num_processes)
    if _keeps_order(augmenter):
        return Sizes(cached * workers, max(3, cached * workers // 2))
    return Sizes(cached, cached)


def queues_of(augmenter: Any) -> list[Any]:
    """The queues that its workers put batches into; empty before they start."""
    one = getattr(augmenter, "_queue", None)
    return [one] if one is not None else list(getattr(augmenter, "_queues", ()))


def results_of(augmenter: Any) -> Any:
    """The queue from which the loop takes batches; None before its workers start."""
    return getattr(augmenter, "results_loop_queue", None) or getattr(augmenter, "pin_memory_queue", None)


def _where() -> str:
    return "in nnU-Net set nnUNet_n_proc_DA in the environment" if "nnunetv2" in sys.modules else ""


def model_of(augmenter: Any) -> LoaderModel:
    """Worker processes, the queues between them and a thread, and the queue that the loop takes from."""
    graph, sizes, cached = Graph(), sizes_of(augmenter), cached_name(augmenter)
    keeps_order = _keeps_order(augmenter)
    workers = int(augmenter.num_processes)
    graph.stage("order", 1, "loop")
    graph.stage("processes", workers, "process", ordered=keeps_order, widened_by="num_processes")
    graph.stage("results_loop", 1, "thread")
    graph.buffer(MAKES, HANDS_OVER, sizes.made, cached)
    graph.buffer(HANDS_OVER, -1, sizes.received)
    own: dict[str, Any] = {"min": 1, "stage": MAKES}
    graph.parameter("num_processes", value=workers, sets="workers", set_in=_where(), **own)
    graph.parameter(cached, value=int(getattr(augmenter, cached)), usual=2, sets="capacity", **own)
    graph.parameter("pin_memory", value=bool(augmenter.pin_memory), usual=False)
    return graph.model("batchgenerators")


def model_in_loop() -> LoaderModel:
    """Everything runs in the training loop."""
    graph = Graph()
    graph.stage("order", 1, "loop")
    graph.stage("processes", 0, "loop", gets_work="own_shard", widened_by="num_processes")
    graph.buffer(MAKES, -1, 0, is_window=True, per_worker=True)
    where = _where() or "pass it to NonDetMultiThreadedAugmenter(data_loader, transform, ...)"
    graph.parameter("num_processes", value=0, usual=0, min=0, sets="workers", set_in=where)
    return graph.model("batchgenerators")


#: By augmenter: its recorder.
recorded: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _class_of(obj: Any) -> Any:
    """The class of batchgenerators, of which a library's may be a subclass."""
    return next((kind for kind in type(obj).__mro__ if kind.__module__.startswith("batchgenerators.")), None)


def missing_of(obj: Any) -> str:
    """A private name that another version lacks; "" if all are there."""
    kind = _class_of(obj)
    if own_attribute(obj, "num_processes") is None:
        return next((name for name in ("data_loader", "transform") if not hasattr(obj, name)), "")
    module = sys.modules.get(getattr(kind, "__module__", ""))
    wanted = [("Process", module), ("_start", kind), ("generator", obj), ("transform", obj)]
    wanted += [("abort_event", obj), (cached_name(obj), obj)]
    return next((name for name, owner in wanted if not hasattr(owner, name)), "")


class AugmenterAttachment(Attachment):
    """An augmenter with worker processes: they make batches, and a thread of it takes them to the loop."""

    def __init__(self, obj: Any) -> None:
        self._recorder = Recorder(weakref.ref(obj))
        super().__init__(obj, ready=self._recorder.is_ready)

    def opened(self, handle: _core.LoaderHandle) -> None:
        self._recorder.opened(handle)

    def describe(self) -> LoaderModel | None:
        return self._recorder.describe()


class Recorder:
    """The record of an augmenter's workers and queues. Does not keep the augmenter."""

    def __init__(self, augmenter: weakref.ref[Any]) -> None:
        self._augmenter = augmenter
        self._handle: _core.LoaderHandle | None = None
        self._made: _core.QueueHandle | None = None
        self._received: _core.QueueHandle | None = None
        self._receives: _core.OverlappingCalls | None = None

    def opened(self, handle: _core.LoaderHandle) -> None:
        augmenter: Any = self._augmenter()
        kind = _class_of(augmenter)
        _hook_processes(sys.modules[kind.__module__])
        _hook_start(kind)
        self._handle = handle
        receives = _core.OperatorHandle(
            "results_loop", "handoff", loader=handle.id, stage=HANDS_OVER * _core.PLACES_PER_STAGE
        )
        handle.add_operator(receives)
        self._receives = _core.OverlappingCalls(receives)
        sizes = sizes_of(augmenter)
        self._made = _core.QueueHandle("worker queues", sizes.made, handle.id, MAKES, HANDS_OVER)
        self._received = _core.QueueHandle("results queue", sizes.received, handle.id, HANDS_OVER, -1)
        recorded[augmenter] = self

    def describe(self) -> LoaderModel | None:
        augmenter = self._augmenter()
        return None if augmenter is None else model_of(augmenter)

    def producer_of(self, augmenter: Any) -> Producer | None:
        """The producer that its workers run instead of its data loader and its transform."""
        if self._handle is None or self._handle.id < 0:
            return None
        path = self._handle.session.live_path
        return Producer(augmenter.generator, augmenter.transform, path, self._handle.id)

    def started(self, augmenter: Any) -> None:
        """Its workers run: follow the queues that it made."""
        for queue in queues_of(augmenter):
            self._follow_workers_queue(augmenter, queue)
        if self._received is not None:
            follow_levels(results_of(augmenter), lambda _: False, self._received)

    def _follow_workers_queue(self, augmenter: Any, queue: Any) -> None:
        """The thread waits in poll(); what it does until get() returns is reading and unpickling."""
        calls, made = self._receives, self._made
        if calls is None or made is None or isinstance(queue.get, _core.HookedCall):
            return
        arrived, queues = [0], queues_of(augmenter)

        def polled(*_: Any) -> None:
            arrived[0] = _core.now_ns()

        def got(*_: Any) -> None:
            calls.done(arrived[0], False)
            made.sampled(_level(queues), _core.now_ns())

        queue._poll = _core.HookedCall(queue._poll, None, polled)
        queue.get = _core.HookedCall(queue.get, None, got)

    def is_ready(self) -> bool | None:
        augmenter = self._augmenter()
        results = None if augmenter is None else results_of(augmenter)
        if results is None:
            return False
        if self._made is not None:
            self._made.sampled(_level(queues_of(augmenter)), _core.now_ns())
        return not results.empty()


def _level(queues: list[Any]) -> int:
    try:
        return sum(int(queue.qsize()) for queue in queues)
    except (NotImplementedError, OSError, ValueError):  # closed, or a system that cannot tell
        return 0


def _hook_processes(module: Any) -> None:
    """Workers of recorded augmenters start with a `Producer`."""
    make = module.Process
    if hasattr(make, "headrace"):
        return

    def process(*args: Any, **kwargs: Any) -> Any:
        of_worker = kwargs.get("args")
        producer = _with_producer(of_worker) if isinstance(of_worker, tuple) else None
        return make(*args, **(kwargs if producer is None else {**kwargs, "args": producer}))

    process.headrace = True  # type: ignore[attr-defined]
    module.Process = process


def _with_producer(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A worker's arguments, with a `Producer` in the place of data loader and transform."""
    for augmenter, attachment in list(recorded.items()):
        event = augmenter.abort_event  # one that has ended has none
        if event is None or not any(each is event for each in args):
            continue
        producer = attachment.producer_of(augmenter)
        places = [index for index, each in enumerate(args) if each is augmenter.generator]
        # The transform follows the data loader; None is nothing to look for.
        if producer is None or len(places) != 1 or args[places[0] + 1] is not augmenter.transform:
            return None
        first = places[0]
        return (*args[:first], producer, None, *args[first + 2 :])
    return None


def _hook_start(kind: Any) -> None:
    if kind in _hooked:
        return
    _hooked.add(kind)

    def after(_: Any, augmenter: Any, *__: Any) -> None:
        if (attachment := recorded.get(augmenter)) is not None:
            attachment.started(augmenter)

    kind._start = _core.HookedCall(kind._start, None, after)


_hooked: weakref.WeakSet[type] = weakref.WeakSet()


def record_in_loop(kind: Any) -> None:
    """From now on a ``SingleThreadedAugmenter`` asks whether it is recorded."""
    if kind in _hooked:
        return
    _hooked.add(kind)
    bare = kind.__next__

    @functools.wraps(bare)
    def asked(self: Any) -> Any:
        producer = recorded.get(self)
        return bare(self) if producer is None else next(producer)

    kind.__next__ = asked
    if vars(kind).get("next") is not None:
        kind.next = asked


class SingleAttachment(Attachment):
    """A ``SingleThreadedAugmenter``: everything runs in the training loop."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj, ready=lambda: False)
        self._augmenter = weakref.ref(obj)

    def opened(self, handle: _core.LoaderHandle) -> None:
        augmenter: Any = self._augmenter()
        kind = _class_of(augmenter)
        made = Producer(augmenter.data_loader, augmenter.transform, "", handle.id)
        for operator in made.record(names_functions=True):
            handle.add_operator(operator)
        record_in_loop(kind)
        recorded[augmenter] = made
        self.model = model_in_loop()


#: By module.
CLASSES = {
    "batchgenerators.dataloading.multi_threaded_augmenter": "MultiThreadedAugmenter",
    "batchgenerators.dataloading.nondet_multi_threaded_augmenter": "NonDetMultiThreadedAugmenter",
    "batchgenerators.dataloading.single_threaded_augmenter": "SingleThreadedAugmenter",
}


class AugmenterAdapter(Adapter):
    """A ``MultiThreadedAugmenter``, ``NonDetMultiThreadedAugmenter`` or ``SingleThreadedAugmenter``."""

    libraries = ("batchgenerators", "nnunetv2")
    classes = tuple(f"{module}:{name}" for module, name in CLASSES.items())

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        missing = missing_of(obj)
        if missing:
            warn_once(
                f"operator detail unavailable: {type(obj).__name__} of batchgenerators has no {missing}"
            )
            return IterableAdapter().attach(obj, name)
        if own_attribute(obj, "num_processes") is None:
            return SingleAttachment(obj)
        return AugmenterAttachment(obj)


libraries.adapters.append(AugmenterAdapter())

RECORDED_AFTER = dict.fromkeys(CLASSES, "")


def record_every_loader() -> None:
    """From now on each augmenter of this process is recorded (``headrace run``)."""
    for module, name in CLASSES.items():
        for kind in classes_of(module, name):
            if not hasattr(kind, "_start"):
                record_in_loop(kind)
            every_loop.patch_next(kind, AugmenterAdapter(), lambda obj: obj in recorded, starts="_start")
