"""`wrap`: the one call that a user makes."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from headrace import _core
from headrace.common.handlers import let_through
from headrace.errors import Error, UsageError
from headrace.loaders import adapter_for
from headrace.loaders.iterable import Calls
from headrace.loaders.kit.base import Adapter, Attachment, Followed, record_detail
from headrace.loaders.kit.inside_next import watch, watch_thread
from headrace.record.budget import looks
from headrace.record.operator import readable
from headrace.record.session import (
    bare_iterator,
    close,
    enabled,
    in_its_phase,
    join_run,
    kept_open,
    loader_handle,
    not_recorded,
    open_session,
    say_all,
)
from headrace.results.report import Report, report_of_loop
from headrace.watch.watching import watch_loader

T = TypeVar("T")


#: Live wrapped objects per session that `wrap(run=...)` opened: the last one closes it.
_users: dict[_core.Session, int] = {}


class _Recording:
    """One wrapped loader: its attachment and its record in the run."""

    def __init__(self, attachment: Attachment, session: _core.Session, name: str) -> None:
        self.attachment = attachment
        self.handle = loader_handle(session, name, attachment.source)
        self.session = session
        record_detail(self.handle, "the loader", attachment.open)

    def iterate(self, iterable: Any, owner: Any) -> Any:
        record_detail(self.handle, "the loader", self.attachment.begin_loop)
        has_around = type(self.attachment).around is not Attachment.around
        over = Followed(self.attachment) if has_around else iterable
        timed = _core.TimedIterator(self.handle, over, owner, self.attachment.ready)
        if self.attachment.unknown:
            record_detail(self.handle, "the loader", lambda handle: watch(handle, iterable))
        watch_thread(self.handle)
        looks.loop_begins(self.handle)
        return timed


def _keep_open(owner: object, session: _core.Session) -> None:
    """A session that wrap opened for a run of its own closes when its last wrapped object is gone."""
    if session in kept_open:
        return
    _users[session] = _users.get(session, 0) + 1
    weakref.finalize(owner, _let_go, session).atexit = False


def _let_go(session: _core.Session) -> None:
    _users[session] -= 1
    if _users[session] > 0:
        return
    del _users[session]
    if session in kept_open or not session.owner:
        return
    close(session)
    say_all(session.take_messages())
    _core.leave_session(session)


class Wrapped:
    """The result of `wrap`: iterates as the wrapped object, with a report. All else is forwarded."""

    def __init__(self, obj: Any, recording: _Recording, name: str | None) -> None:
        self._headrace = recording
        self._headrace_name = name
        self._headrace_object = obj
        _keep_open(self, recording.session)

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = self._headrace.iterate(self._headrace.attachment.iterable, self)
        phased: Iterator[Any] = in_its_phase(iterator, self._headrace.handle, self, bare_iterator)
        return phased

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_headrace"):
            raise AttributeError(name)
        return getattr(self._headrace_object, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_headrace"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._headrace_object, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._headrace_object, name)

    def __contains__(self, item: object) -> bool:
        return item in self._headrace_object

    def __reduce__(self) -> tuple[Any, ...]:
        return _rewrap, (self._headrace_object, self._headrace_name, self._headrace.session.live_path)

    def __repr__(self) -> str:
        return f"<headrace.wrap '{self._headrace.handle.name}': {self._headrace_object!r}>"

    def report(self, epoch: int | None = None) -> Report:
        """The report since `wrap`, or on one epoch (1 the first, -1 the last; the last four are kept).

        May be called while the loop runs, from any thread.
        """
        return report_of_loop(self._headrace.handle, epoch)


class WrappedSized(Wrapped):
    """A wrapped object that has a length."""

    def __len__(self) -> int:
        return len(self._headrace_object)

    def __bool__(self) -> bool:
        return bool(self._headrace_object)

    def __getitem__(self, index: Any) -> Any:
        return self._headrace_object[index]

    def __reversed__(self) -> Iterator[Any]:
        items: Iterator[Any] = reversed(self._headrace_object)
        return items


class WrappedIterator(Wrapped):
    """A wrapped iterator: ``next()`` works on it as well."""

    _headrace_current: Any = None

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()

    def __next__(self) -> Any:
        if self._headrace_current is None:
            # Not the owner itself: in a cycle, the run would close only at the next collection.
            self._headrace_current = self._headrace.iterate(self._headrace.attachment.iterable, None)
        return next(self._headrace_current)


class WrappedFunction(Wrapped):
    """A wrapped function: each call is a GetNext of the loop that calls it.

    A call while another one runs (in another thread, or from inside the function) is made, and not recorded.
    """

    def __init__(self, obj: Any, recording: _Recording, name: str | None) -> None:
        super().__init__(obj, recording, name)
        self._headrace_calls: Any = recording.attachment.iterable
        self._headrace_loop: Any = None
        self._headrace_free = threading.Lock()
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(obj, attribute):
                object.__setattr__(self, attribute, getattr(obj, attribute))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._headrace_free.acquire(blocking=False):
            return self._headrace_object(*args, **kwargs)
        calls = self._headrace_calls
        try:
            if self._headrace_loop is None:
                self._headrace_loop = self._headrace.iterate(calls, None)
            calls.args, calls.kwargs = args, kwargs
            return next(self._headrace_loop)
        except StopIteration:
            self._headrace_loop = None  # the function's own; its next call begins another loop
            raise
        finally:
            calls.args, calls.kwargs = (), {}
            self._headrace_free.release()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"{self._headrace.handle.name} is a function: call it")


def wrap(
    obj: T,
    *,
    name: str | None = None,
    run: str | os.PathLike[str] | None = None,
    rank: int | None = None,
    watch: bool = False,
) -> T:
    """Record the loop over ``obj``: what it waits for, and what feeds it.

    obj: a DataLoader, an SPDL pipeline, ``iter(q.get, sentinel)``, or any iterable or iterator; or a function
    that makes a batch at each call, as in ``get_batch = hr.wrap(get_batch)``. The result yields, returns,
    raises and ends as it does, for several epochs, and has ``report()``. name: of the loader in
    reports, and of the operator for a plain iterable. run: the run folder (created, mode 0700);
    default $HEADRACE_DIR, else headrace-runs/<job or date>. rank: default from the launcher's environment.
    watch: also look for what is wrong with the data (docs/watch.md); of it, statistics and hashes are kept.

    Raises UsageError if obj can neither be iterated nor called. If nothing can be recorded (no memory is
    left), one warning says so, and the loop runs as if it were not wrapped. With HEADRACE=0 in the
    environment obj itself is returned.
    """
    if name is not None and not isinstance(name, str):
        raise UsageError(f"name is a str, not {type(name).__name__}")
    adapter = adapter_for(obj)
    if not enabled():
        return obj
    itself = adapter.records_itself(obj, name, run, rank, watch)
    if itself is not None:
        return cast(T, itself)
    try:
        session = open_session(run, rank)
        if run is None and session not in _users:
            kept_open.add(session)
        shown = readable(name) if name else None
        recording = _Recording(adapter.attach(obj, shown), session, shown or readable(adapter.name(obj)))
        if watch:
            from headrace.watch.datasets import signature_of

            caller = sys._getframe(1)
            sampler = getattr(obj, "sampler", None)
            signature = signature_of(getattr(obj, "dataset", obj), sampler, getattr(obj, "batch_size", None))
            watch_loader(recording.handle, (caller.f_code, caller.f_lineno), signature)
    except UsageError:
        raise
    except Exception as error:  # the loop must still run
        let_through(error)
        reason = not_recorded(error)
        return obj if adapter.keeps_class else cast(T, Unrecorded(obj, reason))
    if adapter.keeps_class:
        return _wrap_instance(obj, adapter, recording)
    wrapper = Wrapped
    if isinstance(recording.attachment.iterable, Calls):
        wrapper = WrappedFunction
    elif hasattr(type(obj), "__next__"):
        wrapper = WrappedIterator
    elif hasattr(type(obj), "__len__"):
        wrapper = WrappedSized
    return wrapper(obj, recording, name)  # type: ignore[return-value]


def _wrap_instance(obj: T, adapter: Adapter, recording: _Recording) -> T:
    def report(self: Any, epoch: int | None = None) -> Report:
        return report_of_loop(adapter.handle_of(self) or recording.handle, epoch)

    report.__qualname__ = f"{type(obj).__name__}.report"  # as messages call it
    report.__doc__ = Wrapped.report.__doc__
    wrapped: T = adapter.as_instance(obj, recording.handle, {"report": report})
    _keep_open(wrapped, recording.session)
    return wrapped


class Unrecorded:
    """The result of `wrap` if nothing can be recorded: the object itself, plus `report`."""

    def __init__(self, obj: Any, reason: str) -> None:
        self._headrace_object = obj
        self._headrace_reason = reason

    def __iter__(self) -> Iterator[Any]:
        return iter(self._headrace_object)

    def __next__(self) -> Any:
        return next(self._headrace_object)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._headrace_object(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._headrace_object)

    def __getitem__(self, index: Any) -> Any:
        return self._headrace_object[index]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._headrace_object, name)

    def report(self, epoch: int | None = None) -> Report:
        """Raises Error: there is nothing to report."""
        raise Error(f"nothing was recorded of this loop: {self._headrace_reason}")


def bare(obj: Any) -> Any:
    """The object that was given to `wrap`; an object that keeps its own class, or was not wrapped: itself."""
    while isinstance(obj, (Wrapped, Unrecorded)):
        obj = obj._headrace_object
    return obj


def handle_of(obj: Any) -> _core.LoaderHandle | None:
    """The record of what `wrap` returned; None: it is nothing of that kind."""
    return obj._headrace.handle if isinstance(obj, Wrapped) else adapter_for(obj).handle_of(obj)


def _rewrap(obj: Any, name: str | None, live_path: str) -> Any:
    """In a worker process: record into the run that obj was pickled in; where that is gone: obj itself."""
    if live_path and not join_run(live_path):
        return obj
    return wrap(obj, name=name)
