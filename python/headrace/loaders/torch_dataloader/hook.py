"""Hooks ``_get_iterator``, which every loop over a DataLoader calls.

The iterator that it makes stays torch's own. It gets a subclass of its class with the same name (for
__next__), so do its queues (for put and get), and its workers start with `WorkerStart`. No Python frame of
ours is between the user's code, torch and the dataset, so tracebacks are unchanged.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from types import FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.messages import warn_once
from headrace.loaders.kit import inside_next, streams
from headrace.loaders.kit.base import classes_of, guarded_detail, subclass
from headrace.loaders.kit.names import callers, object_name
from headrace.loaders.torch_dataloader import loaders, outer_loops
from headrace.loaders.torch_dataloader.first_draw import (
    look_at_draws,
    sampler_of,
    tells_random,
)
from headrace.loaders.torch_dataloader.operators import instrument, users_dataset
from headrace.loaders.torch_dataloader.settings import (
    Settings,
    add_loop,
    model_json,
    settings_of,
)
from headrace.loaders.torch_dataloader.worker import WorkerStart, follow
from headrace.record.budget import looks
from headrace.record.hooks import TRIAL, phased_loops
from headrace.results.loader_model import LoaderModel

_WATCH = outer_loops.WATCH
_PHASE = "_headrace_phase"
_AROUND = "_headrace_around"
#: The loader's record of a loop that may have a phase, and the name that it had when it was made.
_RECORD = "_headrace_names"
#: A loader of torch_geometric finishes its batches in the loop, unless this is true.
_FINISHES = "filter_per_worker"
_FOLLOWED = (
    "_index_queues",
    "_worker_result_queue",
    "_data_queue",
    "_task_info",
    "_rcvd_idx",
    "_prefetch_factor",
    "_num_workers",
)


def _start_method(loader: Any) -> str:
    import multiprocessing  # torch has imported it

    context = getattr(loader, "multiprocessing_context", None)
    return str((context or multiprocessing).get_start_method())


_INNER = object()


class _Pending(threading.local):
    """State between the call of ``_get_iterator`` and its return, innermost last."""

    def __init__(self) -> None:
        #: `_INNER` in a call inside that of a subclass's own hook; None: not recorded.
        self.stack: list[_Start | object | None] = []

    def start(self) -> _Start | None:
        """Of the iterator that is being made."""
        of = next((one for one in reversed(self.stack) if one is not _INNER), None)
        return of if isinstance(of, _Start) else None


#: Names of loaders that stages of another library feed.
_in_front: weakref.WeakKeyDictionary[_core.LoaderHandle, tuple[str, ...]] = weakref.WeakKeyDictionary()


class Around(NamedTuple):
    """A recorded DataLoader without workers, seen from a loader of another library inside its dataset."""

    handle: _core.LoaderHandle
    settings: Settings
    #: The loader's own operators.
    operators: list[_core.OperatorHandle]

    def put_in_front(self, stages: tuple[str, ...]) -> None:
        """These stages feed the loader, and come first in its model. Raises LookupError for other ones."""
        if _in_front.get(self.handle, stages) != stages:
            raise LookupError("the dataset of a DataLoader reads several of it")
        if self.handle not in _in_front:
            for each in self.operators:
                self.handle.add_operator(each)  # before they move
            self.handle.put_in_front(len(stages))
            _in_front[self.handle] = stages

    def add_loop(self, model: LoaderModel) -> None:
        add_loop(model, self.settings)


def loader_around(frame: FrameType | None) -> Around | None:
    """The DataLoader whose dataset runs ``frame``, in the training loop."""
    start = _pending.start()
    if start is not None:
        return start.around if start.workers == 0 else None
    for each in callers(frame):
        if each.f_code.co_name == "_next_data":
            around = _core.local_variables(each)["self"].__dict__.get(_AROUND)
            if isinstance(around, Around):
                return around
    return None


class _Start:
    """One iterator that is being made."""

    def __init__(self, loader: Any, handle: _core.LoaderHandle, begins: bool = True) -> None:
        self.loader = loader
        self.handle = handle
        self.workers = int(getattr(loader, "num_workers", 0) or 0)
        self.pass_number = _core.next_pass()
        self.around = Around(self.handle, settings_of(loader), [])
        if self.around.settings.stream:
            streams.install()  # a dataset may begin its loops as soon as it is asked for its iterator
        if self.handle not in _in_front:
            self.handle.describe(model_json(self.around.settings), self.workers)
        self.watch = _core.IteratorWatch(self.handle, begins)
        if not self.handle.session.live_path and self.workers > 0 and _start_method(loader) != "fork":
            self.handle.miss(_core.NO_WORKER_DETAIL)  # no file, so a spawned worker has nothing to write to
        #: Workers in threads (worker_method, not in a release yet) are left alone.
        self.enters_workers = self.workers > 0 and getattr(loader, "worker_method", "") != "thread"
        if self.workers > 0 and not self.enters_workers:
            self.handle.miss(_core.NO_WORKER_DETAIL)
        self.view: Any = None
        #: The loop that makes its batches of this iterator's.
        self.outer: outer_loops.OuterLoop | None = None

    def make_view(self) -> Any:
        """A copy of the loader for torch's iterator to read from; only its worker_init_fn is another one."""
        init = self.loader.__dict__.get("worker_init_fn")
        begin = WorkerStart(
            self.handle.session.live_path,
            self.handle.id,
            self.pass_number,
            max(1, self.workers),
            has_init=init is not None,
            watched_as=self.handle.name if tells_random(self.handle.id) else None,
        )
        self.view = object.__new__(type(self.loader))
        self.view.__dict__.update(self.loader.__dict__)
        self.view.__dict__["worker_init_fn"] = _core.HookedCall(init, None, begin)
        return self.view

    def take_back(self) -> None:
        """Attributes that the call set on the view belong to the loader."""
        if self.view is None:
            return
        own = self.loader.__dict__
        for key, value in self.view.__dict__.items():
            if key != "worker_init_fn" and own.get(key, self) is not value:
                own[key] = value


_pending = _Pending()


def _before(loader: Any) -> tuple[Any] | None:
    around = _pending.start()
    _pending.stack.append(None)
    if around is not None and (loader is around.loader or loader is around.view):
        _pending.stack[-1] = _INNER  # a subclass's own hook is around that of the class
        return None
    record = loaders.record_of(loader)
    if record is None or record.id < 0:
        return None
    outer_loops.hook(type(loader))
    outer = outer_loops.around(loader)
    is_inner = outer is not None or getattr(loader, _FINISHES, None) is False
    start = _Start(loader, record, begins=not is_inner and not outer_loops.is_being_made(loader))
    start.outer = outer
    _pending.stack[-1] = start
    return (start.make_view(),) if start.enters_workers else None


def _after(iterator: Any, _: Any) -> Any:
    start = _pending.stack.pop()
    if not isinstance(start, _Start):
        return None
    start.take_back()
    inside = outer_loops.inside_of(iterator)
    if inside is None:
        _try_attach(iterator, start)
        return None
    inner, finishes = inside
    loop = start.outer = outer_loops.OuterLoop(iterator, start.loader, start.handle)
    _try_attach(inner, start)
    loop.time(iterator, finishes, object_name(vars(iterator)[finishes]))
    return loop.in_its_phase(start.loader)


def adopt_iterators(loader: Any, handle: _core.LoaderHandle) -> None:
    """Iterators that ``loader`` already has and keeps (persistent workers, loaders of several epochs).

    Their workers are not recorded, only the training process's side.
    """
    outer_loops.hook(type(loader))
    for value in outer_loops.kept_iterators(loader):
        if _WATCH in value.__dict__:
            continue
        start = _Start(loader, handle, begins=False)
        if start.workers > 0:
            start.handle.miss(_core.NO_WORKER_DETAIL)
        _try_attach(value, start)


def _try_attach(iterator: Any, start: _Start) -> None:
    with guarded_detail(start.handle, "torch's DataLoader iterator"):
        _attach(iterator, start)


def _failed(_: Any) -> None:
    start = _pending.stack.pop()
    if isinstance(start, _Start):
        start.take_back()
        start.watch.end()


# --- the iterator ---

_timed_classes: dict[type, type] = {}


def _timed_class(base: type) -> type:
    """A subclass of the iterator's class, of the same name, whose __next__ is timed."""
    made = _timed_classes.get(base)
    if made is None:
        bare: Any = base
        reset = _core.HookedCall(bare._reset, _before_reset, _after_reset)
        made = _timed_classes[base] = subclass(base, {"__next__": _timed_next(base), "_reset": reset})
    return made


def _timed_next(base: Any) -> Any:
    timed = _core.TimedNext(base.__next__)
    if not phased_loops():
        return timed

    def __next__(self: Any) -> Any:  # noqa: N807
        phase = self.__dict__.get(_PHASE)
        return timed(self) if phase is None else phase.next(_RealBatches(self, timed))

    return __next__


class _RealBatches:
    """Batches of torch's iterator, for `headrace.record.loop_phases`."""

    def __init__(self, iterator: Any, timed: _core.TimedNext) -> None:
        self._iterator = iterator
        self._timed = timed

    def take(self) -> Any:
        return self._timed(self._iterator)

    def end_recording(self) -> None:
        self._iterator.__dict__[_WATCH].end()


def _begin_phase(iterator: Any) -> None:
    """A loop begins: a command that runs the script may change it."""
    if _RECORD not in iterator.__dict__:
        return
    from headrace.record.loop_phases import length_of, phase_of

    handle, made_as = iterator.__dict__[_RECORD]
    stream = not hasattr(iterator._dataset, "__getitem__")  # the length that it says may be wrong
    iterator.__dict__[_PHASE] = phase_of(handle, None if stream else length_of(iterator), made_as)


def _before_reset(iterator: Any, loader: Any, *_: Any) -> None:
    watch = iterator.__dict__[_WATCH]
    outer = outer_loops.around(loader)
    if outer is not None:
        outer.adopt(watch)
    watch.restart()
    _begin_phase(iterator)


def _after_reset(_: Any, iterator: Any, *__: Any) -> None:
    _time_sampler(iterator, iterator.__dict__["_headrace_loader"])


def _attach(iterator: Any, start: _Start) -> None:
    own = iterator.__dict__
    timed = _timed_class(type(iterator))
    if start.workers > 0:
        missing = [name for name in _FOLLOWED if name not in own]
        if missing:
            start.handle.miss(_core.NO_HANDOFF_DETAIL)
            warn_once(f"operator detail unavailable: torch's DataLoader iterator has no {', '.join(missing)}")
        else:
            _follow(iterator, start)
    else:
        in_front = len(_in_front.get(start.handle, ()))
        start.around.operators.extend(
            instrument(iterator._dataset_fetcher, start.handle.id, names_functions=True, in_front=in_front)
        )
        own[_AROUND] = start.around
    own["_headrace_loader"] = start.handle.id
    if start.workers == 0:
        look_at_draws(iterator, start.handle)  # in its first GetNext
        if start.around.settings.stream:
            # A stream in the loop may wait for threads of its own.
            inside_next.watch(start.handle, users_dataset(iterator._dataset))
    _time_sampler(iterator, start.handle.id)
    looks.loop_begins(start.handle)
    inside_next.watch_thread(start.handle)
    iterator.__class__ = timed
    own[_WATCH] = start.watch
    if start.outer is not None:
        start.outer.adopt(start.watch)
    elif phased_loops():
        own[_RECORD] = (
            start.handle,
            loaders.name_when_made(start.loader, getattr(start.loader, "dataset", None)),
        )
        _begin_phase(iterator)


def _follow(iterator: Any, start: _Start) -> None:
    """The batches of an iterator with worker processes, one by one."""
    watch = start.watch
    workers = iterator._num_workers
    pins = iterator._data_queue is not iterator._worker_result_queue
    in_order = bool(getattr(iterator, "_in_order", True))
    watch.follow(workers, iterator._prefetch_factor * workers, in_order, pins, start.pass_number)
    for batch, info in list(iterator._task_info.items()):
        watch.dispatched_at_start(info[0], batch)
    for worker, queue in enumerate(iterator._index_queues):
        follow(queue, "put", "dispatch", watch, worker)
    follow(iterator._worker_result_queue, "get", "receive", watch)
    if pins:
        follow(iterator._data_queue, "put", "pinned_put", watch)
        follow(iterator._data_queue, "get", "pinned_get", watch)


def _time_sampler(iterator: Any, loader: int) -> None:
    """A sampler of the user's own runs in the loop's thread. Torch's cost little after the first draw."""
    own = iterator.__dict__
    drawn = own.get("_sampler_iter")
    sampler = sampler_of(iterator)
    bare = drawn is None or sampler is None or isinstance(drawn, _core.OperatorIterator)
    if bare or type(sampler).__module__.startswith("torch.utils.data"):
        return
    name = object_name(sampler)
    handle = _core.OperatorHandle(name, "sampler", 0, 0, "", loader, _core.STAGE_SAMPLER)
    own["_sampler_iter"] = _core.OperatorIterator(drawn, handle)


# --- entry points ---


def hooked_get_iterator(base: type) -> _core.HookedCall | None:
    """``_get_iterator`` of a class, with recording of its iterators; None if it has none."""
    original = getattr(base, "_get_iterator", None)
    return None if original is None else _core.HookedCall(original, _before, _after, _failed)


def hooked_maker(make: Any, of_outer_loops: bool = False) -> _core.HookedCall:
    """Makes torch's iterators for another library's loader, with recording.

    of_outer_loops: only of those that a recorded `OuterLoop` asks for.
    """

    def before(loader: Any) -> tuple[Any] | None:
        if of_outer_loops and outer_loops.around(loader) is None:
            _pending.stack.append(None)
            return None
        return _before(loader)

    return _core.HookedCall(make, before, _after, _failed)


def _before_first_draws(_: Any, iterator: Any, *__: Any) -> None:
    """An iterator with workers draws for all of them while it is made, and when an epoch begins."""
    start = _pending.start()
    watch = iterator.__dict__.get(_WATCH)
    if start is not None or watch is not None:
        look_at_draws(iterator, watch.loader if start is None else start.handle)


def patch_owner(owner: type | None) -> None:
    """Iterators that a class of DataLoaders makes in its own ``_get_iterator`` are hooked."""
    if owner is None or isinstance(owner.__dict__.get("_get_iterator"), _core.HookedCall):
        return
    if "_get_iterator" not in owner.__dict__:
        warn_once(f"operator detail unavailable: {owner.__name__} has no _get_iterator in this version")
        return
    owner._get_iterator = hooked_get_iterator(owner)  # type: ignore[attr-defined]


def _classes() -> tuple[type, ...]:
    """DataLoader and the imported classes that make iterators in their own way."""
    stateful = classes_of("torchdata.stateful_dataloader", "StatefulDataLoader")
    return *classes_of("torch.utils.data", "DataLoader"), *stateful


def patch_class() -> None:
    """Loaders made from a wrapped one are plain DataLoaders, so their class is hooked."""
    base: Any = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
    reset = getattr(base, "_reset", None)
    if reset is not None and not isinstance(reset, _core.HookedCall):
        base._reset = _core.HookedCall(reset, None, _before_first_draws)
    outer_loops.patch()
    for owner in _classes():
        patch_owner(owner)


_noting: set[type] = set()


def record_every_loader() -> None:
    """Every DataLoader of this process is recorded from now on, under the line that made it."""
    loaders.record_all()
    patch_class()
    for owner in _classes():
        if owner in _noting:
            continue
        _noting.add(owner)
        owner.__init__ = _core.HookedCall(owner.__init__, loaders.note_site)  # type: ignore[misc]
        if TRIAL in os.environ:
            from headrace.record.trial import inject_parameters

            inject_parameters(owner, loaders.name_of_new)
