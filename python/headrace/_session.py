"""Where recording goes: the process's sessions, the one warning about files, the orderly end."""

from __future__ import annotations

import atexit
import os
from types import TracebackType

from headrace import _core
from headrace.errors import SegmentError, UsageError

_warned: set[str] = set()


def enabled() -> bool:
    """False when HEADRACE=0 is in the environment."""
    return os.environ.get("HEADRACE", "1") != "0"


def warn_once(reason: str) -> None:
    """One warning per reason and process, on rank 0 only."""
    if reason in _warned or _core.default_rank() != 0:
        return
    _warned.add(reason)
    try:
        import logging  # 10 ms that `import headrace` does not pay
    except OSError:
        return  # no file descriptor is left: the loop goes on all the same

    logging.getLogger("headrace").warning("%s", reason)


def segments_of(session: _core.Session) -> tuple[str, ...]:
    """Where its segment lies while it records, and where it is laid when it ends."""
    return session.live_path, os.path.join(session.run, f"rank{session.rank}.hrseg")  # noqa: PTH118


def check_rank(rank: object) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < 2**30:
        raise UsageError(f"rank must be a whole number from 0, not {rank!r}")
    return rank


def open_session(run: str | os.PathLike[str] | None, rank: int | None) -> _core.Session:
    """The session for ``run`` (None: the current one, or a new one in the default folder)."""
    path = "" if run is None else os.path.abspath(os.fspath(run))  # noqa: PTH100 - resolve() follows links
    native = _core.Session.open(path, _core.default_rank() if rank is None else check_rank(rank))
    _warn_about(native)
    return native


def _warn_about(native: _core.Session) -> None:
    trouble = native.take_trouble()
    if trouble:
        warn_once(f"nothing will be left on disk, recording goes on in memory ({trouble})")


def join_run(live_path: str) -> bool:
    """Record into the run whose live segment this is; False where it is gone, or there never was a file."""
    current = _core.current_session()
    if current is not None and current.live_path == live_path:
        return True
    if not live_path:
        return False
    try:
        _core.Session.attach(live_path)
    except SegmentError:
        return False
    return True


#: Sessions that end with a `with` block or with the process, not with what was wrapped in them last.
kept_open: set[_core.Session] = set()


class Session:
    """A run that is recorded: ``with hr.session(run="runs/a"): ...``.

    What is wrapped, put, taken or called inside the block is recorded into this run. Leaving the block closes
    it.
    """

    def __init__(self, run: str | os.PathLike[str] | None = None, rank: int | None = None) -> None:
        self._run = _core.default_run_folder() if run is None else run
        self._rank = rank
        self._native: _core.Session | None = None

    @property
    def run(self) -> str:
        """The run folder."""
        if self._native is not None:
            return self._native.run
        return os.path.abspath(os.fspath(self._run))  # noqa: PTH100 - resolve() follows links

    def __enter__(self) -> Session:
        if self._native is not None:
            raise UsageError("this session is open already")
        if enabled():
            self._native = open_session(self._run, self._rank)
            kept_open.add(self._native)
            self._native.push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.pop()
            self._native.close()
            kept_open.discard(self._native)
            _warn_about(self._native)

    def __repr__(self) -> str:
        return f"<headrace.Session run={self.run!r}>"


def session(run: str | os.PathLike[str] | None = None, rank: int | None = None) -> Session:
    """A context manager: everything recorded inside it goes to ``run`` (default: as for `wrap`)."""
    return Session(run, rank)


if not enabled():
    _core.disable()

# Before the interpreter goes: the sampler must not ask for a lock that nobody will hand out any more.
atexit.register(_core.close_all)
