"""Every pipeline of a process is recorded, under the line that built it (``headrace run``)."""

from __future__ import annotations

import functools
import multiprocessing
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.loaders.kit.base import Attachment
from headrace.loaders.kit.inside_next import watch_thread
from headrace.loaders.kit.names import user_line
from headrace.loaders.spdl.attachment import PipelineAttachment, seen_from_outside
from headrace.record.operator import readable
from headrace.record.session import (
    bare_iterator,
    enabled,
    in_its_phase,
    kept_open,
    loader_handle,
    not_recorded,
    open_session,
)

_Recording = tuple[_core.LoaderHandle, Attachment]

#: The last pipeline of each line that builds one: built anew for each epoch, it is the same loader.
_last_of_line: dict[str, tuple[weakref.ref[Any], _Recording]] = {}
_recordings: weakref.WeakKeyDictionary[Any, _Recording] = weakref.WeakKeyDictionary()


def record_every_loader() -> None:
    """From now on each pipeline of this process is recorded when it is iterated over."""
    module = sys.modules["spdl.pipeline"]
    pipeline: Any = module.Pipeline
    if getattr(pipeline.get_iterator, "headrace", False):
        return
    make, iterate = pipeline.__init__, pipeline.get_iterator

    @functools.wraps(make)
    def recorded_init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        if _is_of_training():
            _attach(self)

    @functools.wraps(iterate)
    def recorded_iterator(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _recorded_iterator(self, iterate(self, *args, **kwargs))

    recorded_iterator.headrace = True  # type: ignore[attr-defined]
    pipeline.__init__, pipeline.get_iterator = recorded_init, recorded_iterator
    _record_subprocesses()


def _record_subprocesses() -> None:
    """Iterables of run_pipeline_in_subprocess are recorded from outside."""
    kind: Any = getattr(sys.modules.get("spdl.pipeline._iter_utils._subprocess"), "_SubprocessIterable", None)
    if kind is None:
        return
    iterate = kind.__iter__

    @functools.wraps(iterate)
    def recorded(self: Any) -> Any:
        if _is_of_training() and self not in _recordings:
            try:
                attachment = seen_from_outside(self, "subprocess pipeline")
                _recordings[self] = _open("subprocess pipeline", attachment.source), attachment
            except Exception as error:  # the loop must still run
                let_through(error)
                not_recorded(error)
        return _recorded_iterator(self, iterate(self))

    kind.__iter__ = recorded


def _is_of_training() -> bool:
    """Whether a pipeline that is made or iterated over here may feed a training loop.

    Pipelines in worker processes and in the threads of another pipeline feed that pipeline.
    """
    return (
        enabled()
        and multiprocessing.parent_process() is None
        and not threading.current_thread().name.startswith("spdl_")
    )


def _open(name: str, source: _core.OperatorHandle | None = None) -> _core.LoaderHandle:
    session = open_session(None, None)
    kept_open.add(session)
    return loader_handle(session, readable(name), source)


def _attach(pipeline: Any) -> None:
    attachment = PipelineAttachment(pipeline)
    try:
        site = user_line("spdl")
        handle = _handle_for(site)
        _last_of_line[site] = weakref.ref(pipeline), (handle, attachment)
    except Exception as error:  # the pipeline must still run
        let_through(error)
        not_recorded(error)
        return
    _recordings[pipeline] = handle, attachment
    try:
        attachment.open(handle)
    except Exception as error:
        let_through(error)
        handle.miss(_core.NO_ITERATOR_DETAIL)
        warn_once(f"operator detail unavailable: SPDL is not as its adapter expects ({error!r})")
    # Its recording ends with the pipeline.
    attachment.iterable = ()


def _handle_for(site: str) -> _core.LoaderHandle:
    """The record of the pipeline that the same line built before, if that has ended; else a new one."""
    known = _last_of_line.get(site)
    if known is not None:
        earlier, (handle, attachment) = known[0](), known[1]
        if earlier is None or not earlier._impl._event_loop.is_alive():
            attachment.detach()
            return handle
    return _open(f"Pipeline at {site}" if site else "Pipeline")


def _recorded_iterator(pipeline: Any, iterator: Iterator[Any]) -> Any:
    known = _recordings.get(pipeline)
    if known is None or not _is_of_training():
        return iterator
    handle, attachment = known
    try:
        attachment.begin_loop(handle)
        timed = _core.TimedIterator(handle, iterator, None, attachment.ready)
        watch_thread(handle)
        return in_its_phase(timed, handle, pipeline, bare_iterator)
    except Exception as error:  # the loop must still run
        let_through(error)
        not_recorded(error)
        return iterator
