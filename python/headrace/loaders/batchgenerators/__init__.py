"""batchgenerators' augmenters, which nnU-Net trains with: worker processes, each with its own data loader.

Recorded are the workers as they start, the augmenter's queues, and the thread between them. `producer` makes
a batch in a worker process, with the data loader and the transforms as operators.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.own_attributes import own_attribute
from headrace.loaders.batchgenerators import producer
from headrace.loaders.batchgenerators.producer import HANDS_OVER, MAKES, Producer
from headrace.loaders.iterable import IterableAdapter
from headrace.loaders.kit import libraries
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.probes import follow_levels
from headrace.results.loader_model import LoaderModel

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
    wanted += [("abort_event", obj), (producer.cached_name(obj), obj)]
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
        sizes = producer.sizes_of(augmenter)
        self._made = _core.QueueHandle("worker queues", sizes.made, handle.id, MAKES, HANDS_OVER)
        self._received = _core.QueueHandle("results queue", sizes.received, handle.id, HANDS_OVER, -1)
        recorded[augmenter] = self

    def describe(self) -> LoaderModel | None:
        augmenter = self._augmenter()
        return None if augmenter is None else producer.model_of(augmenter)

    def producer_of(self, augmenter: Any) -> Producer | None:
        """The producer that its workers run instead of its data loader and its transform."""
        if self._handle is None or self._handle.id < 0:
            return None
        path = self._handle.session.live_path
        return Producer(augmenter.generator, augmenter.transform, path, self._handle.id)

    def started(self, augmenter: Any) -> None:
        """Its workers run: follow the queues that it made."""
        for queue in producer.queues_of(augmenter):
            self._follow_workers_queue(augmenter, queue)
        if self._received is not None:
            follow_levels(producer.results_of(augmenter), _is_never, self._received)

    def _follow_workers_queue(self, augmenter: Any, queue: Any) -> None:
        """The thread waits in poll(); what it does until get() returns is reading and unpickling."""
        poll, get, calls, made = queue._poll, queue.get, self._receives, self._made
        if calls is None or made is None or hasattr(get, "headrace"):
            return
        arrived = [0]
        now, queues = _core.now_ns, producer.queues_of(augmenter)

        def timed_poll(*args: Any) -> Any:
            found = poll(*args)
            arrived[0] = now()
            return found

        def timed_get(*args: Any, **kwargs: Any) -> Any:
            item = get(*args, **kwargs)
            calls.done(arrived[0], False)
            made.sampled(_level(queues), now())
            return item

        timed_get.headrace = True  # type: ignore[attr-defined]
        queue._poll, queue.get = timed_poll, timed_get

    def is_ready(self) -> bool | None:
        augmenter = self._augmenter()
        results = None if augmenter is None else producer.results_of(augmenter)
        if results is None:
            return False
        if self._made is not None:
            self._made.sampled(_level(producer.queues_of(augmenter)), _core.now_ns())
        return not results.empty()


def _is_never(_: Any) -> bool:
    """No item is an end mark."""
    return False


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
        producer = Producer(augmenter.data_loader, augmenter.transform, "", handle.id)
        for operator in producer.record(names_functions=True):
            handle.add_operator(operator)
        record_in_loop(kind)
        recorded[augmenter] = producer

    def describe(self) -> LoaderModel | None:
        return producer.model_in_loop()


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

#: `record_every_loader` is called after their import (`tools/loader_modules.py`).
RECORDED_AFTER = dict.fromkeys(CLASSES, "")


def record_every_loader() -> None:
    """From now on each augmenter of this process is recorded (``headrace run``)."""
    from headrace.loaders.kit import every_next

    for module, name in CLASSES.items():
        kind = getattr(sys.modules.get(module), name, None)
        if kind is None:
            continue
        if not hasattr(kind, "_start"):
            record_in_loop(kind)
        every_next.patch(kind, AugmenterAdapter(), lambda obj: obj in recorded, starts="_start")
