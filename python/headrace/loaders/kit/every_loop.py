"""Every loop over a class of loaders is recorded, under the user's line that iterates (``headrace run``).

`patch` is for classes that make iterators, `patch_next` for those whose objects are asked with ``next()``.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple, Protocol

from headrace import _core
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit.base import Adapter, Attachment, guarded, record_detail
from headrace.loaders.kit.inside_next import watch, watch_thread
from headrace.loaders.kit.libraries import MODULES, adapters, streams
from headrace.loaders.kit.names import callers, is_the_users, user_line
from headrace.loaders.kit.streams import StreamStages
from headrace.record.get_next import BlockLoop
from headrace.record.operator import readable
from headrace.record.session import (
    bare_iterator,
    enabled,
    in_its_phase,
    kept_session,
    loader_handle,
    not_recorded,
)


class Watcher(Protocol):
    """A framework's callback, which knows what the loops of its trainer are for."""

    def role(self) -> str:
        """The purpose of a loop that begins now: "train", "validation", ...; empty: unknown."""

    def recorded(self, record: _core.LoaderHandle, role: str) -> None:
        """``record`` is that of a loop that begins."""


class Recording(NamedTuple):
    """The record of an object's loops."""

    handle: _core.LoaderHandle
    attachment: Attachment


#: Code of the libraries whose loaders are recorded calls datasets of the user's own.
_OF_LIBRARIES = tuple(f"{package}." for package in MODULES)
#: By object, and by line: made anew for each epoch by the same line, it is the same loader.
_of_object: dict[int, Recording] = {}
_of_line: dict[str, tuple[weakref.ref[Any], Recording]] = {}
#: The object whose loop begins on this thread.
_beginning = threading.local()


def add(adapter: Adapter, stages: StreamStages | None = None) -> Callable[[], None]:
    """Use an adapter, and stages of its library's streams, from now on. Returns what records every loop."""
    adapters.append(adapter)
    if stages is not None:
        streams.append(stages)
    return functools.partial(record_loops, adapter)


def record_loops(adapter: Adapter) -> None:
    """From now on each of the adapter's `loops` in this process is recorded (``headrace run``)."""
    for each in adapter.loops:
        module, _, place = each.partition(":")
        kind, _, method = place.partition(".")
        patch(getattr(sys.modules[module], kind), adapter, method or "__iter__")


def patch(
    kind: Any,
    adapter: Adapter,
    method: str = "__iter__",
    feeds: Callable[[FrameType], bool] | None = None,
    makes: str = "",
) -> None:
    """Loops over objects of class ``kind`` are recorded if a line of the user's own begins them.

    feeds: whether a loop that begins in a frame is part of another loader's; None: `feeds_a_loader`.
    makes: the method after which an object is recorded, if its threads may start before the loop.
    """
    is_part = feeds or feeds_a_loader
    iterate = getattr(kind, method)
    if getattr(iterate, "headrace", False):
        return

    def is_recorded(frame: FrameType) -> bool:
        return enabled() and not _in_worker_process() and not is_part(frame)

    def made(_: Any, self: Any, *__: Any, **___: Any) -> None:
        if is_recorded(sys._getframe(1)):
            _recording_of(self, adapter)

    if makes:
        setattr(kind, makes, _core.HookedCall(getattr(kind, makes), None, made))

    @functools.wraps(iterate)
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The first: an iterator, of which the recorded one asks for its iterator.
        if getattr(_beginning, "of", None) is self or not is_recorded(sys._getframe(1)):
            return iterate(self, *args, **kwargs)
        return record(self, adapter, lambda: iterate(self, *args, **kwargs))

    recorded.headrace = True  # type: ignore[attr-defined]
    setattr(kind, method, recorded)


def _in_worker_process() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def feeds_a_loader(frame: FrameType) -> bool:
    """A loop of another library, or of a dataset that a loader reads: that loader is recorded itself."""
    modules = (str(each.f_globals.get("__name__", "")) for each in callers(frame))
    return not is_the_users(frame.f_code.co_filename) or any(
        module.startswith(_OF_LIBRARIES) for module in modules
    )


def record(obj: Any, adapter: Adapter, iterate: Callable[[], Iterator[Any]]) -> Any:
    recording = _recording_of(obj, adapter)
    if recording is None:
        return iterate()
    handle, attachment = recording
    record_detail(handle, adapter.libraries[0], attachment.begin_loop)
    _beginning.of = obj
    try:
        iterator = _core.TimedIterator(handle, attachment.around(iterate()), None, attachment.ready)
    finally:
        _beginning.of = None
    if attachment.unknown:
        watch(handle, obj)
    watch_thread(handle)
    return in_its_phase(iterator, handle, obj, bare_iterator)


def _recording_of(obj: Any, adapter: Adapter) -> Recording | None:
    with guarded(not_recorded):
        return _of_object.get(id(obj)) or _open(obj, adapter)
    return None


def _open(obj: Any, adapter: Adapter) -> Recording:
    name, line = _name_of(obj, adapter)
    known = _of_line.get(line)
    attachment = adapter.attach(obj)
    if known is not None and ((earlier := known[0]()) is None or adapter.has_ended(earlier)):
        known[1].attachment.detach()
        handle = known[1].handle
    else:
        handle = loader_handle(kept_session(), name, attachment.source)
    record_detail(handle, adapter.libraries[0], attachment.open)
    # Its recording ends with the object.
    attachment.iterable = ()
    recording = Recording(handle, attachment)
    _of_object[id(obj)] = recording
    _of_line[line] = weakref.ref(obj), recording
    remove_with(obj, _of_object, id(obj))
    return recording


def _name_of(obj: Any, adapter: Adapter) -> tuple[str, str]:
    """The name of its record, and the user's line that begins the loop."""
    name, line = adapter.name(obj), user_line(*adapter.libraries)
    return readable(f"{name} at {line}" if line else name), line


def loop_of(obj: Any) -> _core.LoaderHandle | None:
    """The record of an object whose loops `record` records; None: there is none."""
    recording = _of_object.get(id(obj))
    return recording.handle if recording is not None else None


def patch_next(kind: Any, adapter: Adapter, is_recorded: Callable[[Any], bool], starts: str = "") -> None:
    """Each next() of an object of the class is a GetNext of the loop over that object.

    is_recorded: whether an object has a record already, as one that `wrap` got.
    starts: its method that starts the workers, which a program may call before the first ``next()``.
    """
    if not isinstance(kind.__next__, _core.HookedCall):
        _RecordedNext(kind, adapter, is_recorded, starts)


class _RecordedNext:
    def __init__(self, kind: Any, adapter: Adapter, is_recorded: Callable[[Any], bool], starts: str) -> None:
        self._adapter = adapter
        self._is_recorded = is_recorded
        self._loops: weakref.WeakKeyDictionary[Any, _Loop] = weakref.WeakKeyDictionary()
        bare = kind.__next__
        hooked = _core.HookedCall(bare, self._before, self._after, self._failed)
        kind.__next__ = hooked
        for name, held in list(vars(kind).items()):
            if held is bare:  # next() under another name
                setattr(kind, name, hooked)
        if starts and hasattr(kind, starts):
            setattr(kind, starts, _core.HookedCall(getattr(kind, starts), self._open))

    def _open(self, obj: Any, *_: Any) -> None:
        if enabled() and obj not in self._loops and not self._is_recorded(obj):
            self._loops[obj] = _Loop(obj, self._adapter)

    def _before(self, obj: Any, *_: Any) -> None:
        self._open(obj)
        if (loop := self._loops.get(obj)) is not None:
            loop.begin()

    def _after(self, _: Any, obj: Any, *__: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(None)

    def _failed(self, obj: Any, *_: Any) -> None:
        if (loop := self._loops.get(obj)) is not None:
            loop.end(StopIteration)


class _Loop:
    def __init__(self, obj: Any, adapter: Adapter) -> None:
        self._inside = 0  #: the thread that is inside next()
        self._block: BlockLoop | None = None
        self._attachment: Attachment | None = None
        self._ready: bool | None = None
        with guarded(not_recorded):
            session = kept_session()
            self._attachment = adapter.attach(obj)
            self._block = BlockLoop(session, _name_of(obj, adapter)[0], self._attachment.source)
            self._attachment.iterable = ()  # its recording ends with the object
            if self._attachment.unknown:
                watch(self._block.handle, obj)
            steps = self._attachment.open, self._attachment.begin_loop
            record_detail(self._block.handle, adapter.libraries[0], *steps)

    def begin(self) -> None:
        ready = self._attachment.ready if self._attachment is not None else None
        is_ready = ready() if ready is not None else None
        if self._block is not None and self._block.begin():
            self._ready = is_ready
            self._inside = threading.get_ident()

    def end(self, error: type[BaseException] | None) -> None:
        if self._block is not None and self._inside == threading.get_ident():
            self._inside = 0
            self._block.end(error, -1 if self._ready is None else int(self._ready))
