"""Every loop over a class of loaders is recorded, under the user's line that iterates (``headrace run``)."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.weak_tables import remove_with
from headrace.loaders.kit.base import Adapter, Attachment, record_detail
from headrace.loaders.kit.inside_next import watch, watch_thread
from headrace.loaders.kit.libraries import MODULES, adapters, streams
from headrace.loaders.kit.names import is_the_users, user_line
from headrace.loaders.kit.streams import StreamStages
from headrace.record.operator import readable
from headrace.record.session import (
    bare_iterator,
    enabled,
    in_its_phase,
    kept_session,
    loader_handle,
    not_recorded,
)


class Loop:
    """The record of an object's loops."""

    def __init__(self, handle: _core.LoaderHandle) -> None:
        self.handle = handle


class _Recording(NamedTuple):
    handle: _core.LoaderHandle
    attachment: Attachment
    loop: Loop


#: Code of the libraries whose loaders are recorded calls datasets of the user's own.
_OF_LIBRARIES = tuple(f"{package}." for package in MODULES)
#: By object, and by line: made anew for each epoch by the same line, it is the same loader.
_of_object: dict[int, _Recording] = {}
_of_line: dict[str, tuple[weakref.ref[Any], _Recording]] = {}
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
    if not is_the_users(frame.f_code.co_filename):
        return True
    around: FrameType | None = frame
    while around is not None:
        if str(around.f_globals.get("__name__", "")).startswith(_OF_LIBRARIES):
            return True
        around = around.f_back
    return False


def record(obj: Any, adapter: Adapter, iterate: Callable[[], Iterator[Any]]) -> Any:
    recording = _recording_of(obj, adapter)
    if recording is None:
        return iterate()
    handle, attachment, _ = recording
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


def _recording_of(obj: Any, adapter: Adapter) -> _Recording | None:
    try:
        return _of_object.get(id(obj)) or _open(obj, adapter)
    except Exception as error:  # the loop must still run
        let_through(error)
        not_recorded(error)
        return None


def _open(obj: Any, adapter: Adapter) -> _Recording:
    line = user_line(*adapter.libraries)
    known = _of_line.get(line)
    attachment = adapter.attach(obj)
    if known is not None and ((earlier := known[0]()) is None or adapter.has_ended(earlier)):
        known[1].attachment.detach()
        handle = known[1].handle
    else:
        session = kept_session()
        name = adapter.name(obj)
        shown = readable(f"{name} at {line}" if line else name)
        handle = loader_handle(session, shown, attachment.source)
    record_detail(handle, adapter.libraries[0], attachment.open)
    # Its recording ends with the object.
    attachment.iterable = ()
    recording = _Recording(handle, attachment, Loop(handle))
    _of_object[id(obj)] = recording
    _of_line[line] = weakref.ref(obj), recording
    remove_with(obj, _of_object, id(obj))
    return recording


def loop_of(obj: Any) -> Loop | None:
    """The record of an object whose loops `record` records; None: there is none."""
    recording = _of_object.get(id(obj))
    return recording.loop if recording is not None else None
