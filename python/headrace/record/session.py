"""The process's sessions, what a script was set to, the end."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.errors import SegmentError, UsageError
from headrace.record.hooks import TRIAL, on_loader, phased_loops
from headrace.record.remote import count_requests


def enabled() -> bool:
    """False when HEADRACE=0 is in the environment."""
    return os.environ.get("HEADRACE", "1") != "0"


def in_its_phase(
    iterator: Any, handle: _core.LoaderHandle, loader: Any, unrecorded: Callable[[Any], Any]
) -> Any:
    """``iterator`` over ``loader``, which ``handle`` records; under those commands, what changes the loop.

    unrecorded: ends the recording of ``iterator``, and returns what to take from afterwards.
    """
    if not phased_loops():
        return iterator
    from headrace.record.loop_phases import in_phases

    return in_phases(iterator, handle, loader, unrecorded)


def set_in_trial(setters: Callable[[], dict[str, Callable[[Any], None]]], name: str) -> None:
    """In a trial of `headrace tune`, its parameters are set on the loader ``name``, which is about to run.

    setters: by parameter; asked only in a trial that concerns this loader.
    """
    if TRIAL in os.environ:
        from headrace.record.trial import set_parameters

        set_parameters(setters, name)


def bare_iterator(timed: Any) -> Any:
    """The source of a `TimedIterator`. The recording ends with the object that is left."""
    return timed.__wrapped__


def say_all(lines: list[str]) -> None:
    """Log the messages of sessions, each line once."""
    for line in lines:
        warn_once(line)


#: How many loaders this process opened a record for.
loaders_opened = 0


def loader_handle(
    session: _core.Session, name: str, source: _core.OperatorHandle | None, identity: int = 0
) -> _core.LoaderHandle:
    """A loader's record in the session; logs one line if the run has no room for it."""
    from headrace.record.budget import looks

    global loaders_opened
    looks.start()
    loaders_opened += 1
    handle = _core.LoaderHandle(session, name, source, identity)
    if handle.id < 0:
        warn_once(f"{name!r} is not recorded: 32 loaders are alive, which is what a run holds")
    online = os.cpu_count() or 0
    if len(os.sched_getaffinity(0)) < online:
        handle.note("machine_cores", str(online))
    if handle.id >= 0:
        looks.loader_opened(handle)
        _write(session)  # a run's folder is made with its first loader
        for tell in on_loader:
            tell(handle)
    return handle


def close(session: _core.Session) -> None:
    """Close it now, before the process ends."""
    if loaders_opened:
        from headrace.record.budget import looks

        looks.session_closes(session)
    session.close()


def check_rank(rank: object) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < 2**30:
        raise UsageError(f"rank must be a whole number from 0, not {rank!r}")
    return rank


def open_session(
    run: str | os.PathLike[str] | None, rank: int | None, *, unnamed: bool = False
) -> _core.Session:
    """The session for ``run`` (None: the current one, or a new one in the default folder)."""
    path = "" if run is None else absolute_run(run)
    native = _core.Session.open(path, _core.default_rank() if rank is None else check_rank(rank), unnamed)
    say_all(native.take_messages())
    watch_collections()
    count_requests()
    return native


def watch_collections() -> None:
    """Record how long Python's garbage collector runs in each recorded thread of this process."""
    if _core.note_collection not in gc.callbacks:
        gc.callbacks.append(_core.note_collection)


def not_recorded(error: Exception) -> str:
    """Warn that a loop is not recorded because of ``error``. Returns the reason."""
    reason = typed_error_line(error)
    warn_once(f"nothing is recorded: {reason}")
    return reason


def absolute_run(run: str | os.PathLike[str]) -> str:
    """The run folder that ``run`` names. Raises UsageError for a name that no file can have."""
    try:
        path = os.fsdecode(run)
    except (TypeError, UnicodeError):
        raise UsageError(f"run is the path of a folder, not {run!r}") from None
    if "\0" in path:
        raise UsageError(f"run is the path of a folder, not {path!r}: no name holds a zero byte")
    try:
        return os.path.abspath(path)  # noqa: PTH100 - resolve() follows links
    except OSError:  # the working directory is gone; what is below it cannot be made either
        return path


def join_run(live_path: str) -> bool:
    """Record into the run of this live segment; False if it is gone, or never had a file."""
    current = _core.current_session()
    if current is not None and current.live_path == live_path:
        return True
    if not live_path:
        return False
    try:
        _core.Session.attach(live_path)
    except SegmentError:
        return False
    watch_collections()
    count_requests()
    return True


#: Sessions that end with a `with` block or with the process, not with the last object wrapped in them.
kept_open: set[_core.Session] = set()


def kept_session(run: str | os.PathLike[str] | None = None, rank: int | None = None) -> _core.Session:
    """The session of `open_session`, in `kept_open`."""
    kept_open.add(opened := open_session(run, rank))
    return opened


class Session:
    """A recorded run: ``with hr.session(run="runs/a"): ...``.

    What is wrapped, put, taken or called inside the block is recorded into this run. Leaving the block closes
    it.
    """

    def __init__(self, run: str | os.PathLike[str] | None = None, rank: int | None = None) -> None:
        self._unnamed = run is None and _core.default_run_is_unnamed()
        self._run = _core.default_run_folder() if run is None else run
        self._rank = rank
        self._native: _core.Session | None = None

    @property
    def run(self) -> str:
        """The run folder."""
        if self._native is not None:
            return self._native.run
        return absolute_run(self._run)

    def __enter__(self) -> Session:
        if self._native is not None:
            raise UsageError("this session is open already")
        if enabled():
            self._native = open_session(self._run, self._rank, unnamed=self._unnamed)
            kept_open.add(self._native)
            self._native.push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.pop()
            close(self._native)
            kept_open.discard(self._native)
            say_all(self._native.take_messages())

    def __repr__(self) -> str:
        return f"<headrace.Session run={self.run!r}>"


def session(run: str | os.PathLike[str] | None = None, rank: int | None = None) -> Session:
    """A context manager: everything recorded inside it goes to ``run`` (default: as for `wrap`)."""
    return Session(run, rank)


#: Parameters given before the run has a folder.
_given: dict[str, object] = {}


def params(**parameters: object) -> None:
    """Keep what this run is set to, beside its recording: ``hr.params(lr=0.1, model="resnet50")``.

    `runs` and ``headrace ls`` show it. Numbers, short words and paths are kept as texts, of everything else
    only the name. May be called several times, also before a loader is recorded; the last value counts. With
    HEADRACE=0 it does nothing. Never raises.
    """
    if not enabled():
        return
    _given.update(parameters)
    session = _core.current_session()
    if session is not None:
        _write(session)


def _write(session: _core.Session) -> None:
    if not _given:
        return
    from headrace.results import script_parameters

    given = dict(_given)
    _given.clear()
    try:
        script_parameters.write(session.run, session.rank, script_parameters.cleaned(given))
    except Exception as error:
        let_through(error)
        warn_once(f"parameters are not kept: {error}")


if not enabled():
    _core.disable()


def close_all() -> None:
    """The end of the process: every session is closed and logs its messages."""
    say_all(_core.close_all())


# Before the interpreter goes: the sampler must not request a lock that is never granted again.
atexit.register(close_all)
# CPython 3.12 and newer warn of a fork in a process with several threads: no such thread is Headrace's.
os.register_at_fork(before=_core.before_fork, after_in_parent=_core.after_fork_in_parent)
