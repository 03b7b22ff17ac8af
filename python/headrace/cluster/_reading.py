"""Reads ranks or jobs as summaries on any `concurrent.futures.Executor`, and keeps the summaries.

A second look reads nothing again, and an interrupted analysis goes on.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from headrace.cluster import _job_summary, _summary
from headrace.cluster._files import Files, hashed
from headrace.common.cores import usable_cores
from headrace.common.folder_files import read_file, user_cache
from headrace.common.plain import error_line, without_secrets
from headrace.errors import Error, FormatError, UsageError
from headrace.traces.files import is_url

#: With fewer ranks, starting processes takes longer than reading.
_FEW = 4
#: A summary takes at most 256 kB; a larger file is something else.
_MAX_BYTES = 256 << 10

Done = Callable[[Files, dict[str, Any]], None]


def read_all(
    path: str | os.PathLike[str],
    found: Sequence[Files],
    executor: Executor | None,
    cache: str | os.PathLike[str] | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[list[dict[str, Any]], list[tuple[str, str]], list[str]]:
    """Summaries in the order of ``found``, names of those that cannot be read with the reason, and notes.

    ``executor``: None for processes on this machine. ``cache``: None for this user's cache folder.
    ``progress`` is called with those that are done and all of them.
    """
    kept = Cache(Path(cache) if cache is not None else default_cache(os.fspath(path)))
    summaries = {files.path: summary for files in found if (summary := kept.read(files)) is not None}
    errors: list[tuple[str, str]] = []

    def done(files: Files, summary: dict[str, Any]) -> None:
        if "problem" in summary:
            errors.append((files.name, str(summary["problem"])))
        else:
            kept.write(files, summary)
            summaries[files.path] = summary
        if progress is not None:
            progress(len(summaries) + len(errors), len(found))

    unread = [files for files in found if files.path not in summaries]
    if executor is None and len(unread) < _FEW:
        for files in unread:
            done(files, summarise_or_say(files))
    elif executor is not None:
        for files in _lost(unread, executor, done):
            done(files, {"problem": "the engine lost the process that read it"})
    else:
        with _pool(len(unread)) as pool:
            lost = _lost(unread, pool, done)
        for files in lost:  # one of these ended the process that read it: each gets a process of its own
            with _pool(1) as pool:
                for again in _lost([files], pool, done):
                    done(again, {"problem": "reading it ended the process (out of memory?)"})
    ordered = [summaries[files.path] for files in found if files.path in summaries]
    return ordered, sorted(errors), [kept.problem] if kept.problem else []


def summarise_or_say(files: Files) -> dict[str, Any]:
    """The summary of a rank or of a job; ``{"problem": why}`` if it cannot be read."""
    try:
        return _job_summary.summarise(files) if files.kind == "job" else _summary.summarise(files)
    except (Error, OSError, ValueError, MemoryError, RecursionError) as error:
        own = without_secrets(files.path)
        said = error_line(error).replace(f"{own}/", "").replace(own, files.name)
        return {"problem": said[: _summary.MAX_TEXT]}


def _lost(each: Sequence[Files], executor: Executor, done: Done) -> list[Files]:
    """Reads them; those that were lost with a process are returned."""
    futures: dict[Future[dict[str, Any]], Files] = {}
    lost: list[Files] = []
    for files in each:
        try:
            futures[executor.submit(summarise_or_say, files)] = files
        except BrokenProcessPool:  # noqa: PERF203
            lost.append(files)
    for future in as_completed(futures):
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            lost.append(futures[future])
        else:
            problem = {"problem": f"the engine failed: {error_line(error)[:300]}"}
            done(futures[future], problem if error is not None else future.result())
    return lost


# --- engines ---


class _Process(SpawnProcess):
    """Does not import the script, which may have no ``if __name__ == "__main__"``."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        script: dict[str, Any] = vars(sys.modules["__main__"])
        kept: dict[str, Any] = {name: script[name] for name in ("__file__", "__spec__") if name in script}
        try:
            script.pop("__file__", None)
            script["__spec__"] = None
            return SpawnProcess._Popen(process_obj)
        finally:
            script.update(kept)


class _Context(SpawnContext):
    Process = _Process


def _pool(most: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(max(1, min(usable_cores(), most)), mp_context=_context())


def _context() -> BaseContext:
    """A new interpreter takes 0.15 s. A fork takes 5 ms, but it may hang if the process has other threads."""
    try:
        threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    except OSError:  # not Linux
        return _Context()
    return get_context("fork") if threads == 1 else _Context()


class RayExecutor(Executor):
    """Each call is a Ray task. Uses the cluster of ``RAY_ADDRESS``, else starts Ray on this machine."""

    def __init__(self) -> None:
        import ray

        self._ray, self._own, self._remote = ray, not ray.is_initialized(), cache(ray.remote)
        if self._own:
            ray.init(log_to_driver=False, include_dashboard=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._remote(fn).remote(*args, **kwargs).future()  # type: ignore[no-any-return]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._own:
            self._ray.shutdown()


#: Executors that have a name; each is imported if it is asked for.
_NAMED = {
    "ray": f"{__name__}:RayExecutor",
    "dask": "distributed:Client",
    "mpi": "mpi4py.futures:MPIPoolExecutor",
}


@contextmanager
def engine(name: str) -> Iterator[Executor | None]:
    """The executor of an engine: local (None), ray, dask, mpi, or MODULE:NAME, called without arguments.

    Raises UsageError if it is not installed or not an executor.
    """
    if name == "local":
        yield None
        return
    module, _, attribute = _NAMED.get(name, name).partition(":")
    if not module or not attribute:
        raise UsageError(f"no engine {name!r}: local, ray, dask, mpi or MODULE:EXECUTOR")
    try:
        made = getattr(importlib.import_module(module), attribute)
        if isinstance(made, type) or not callable(getattr(made, "submit", None)):
            made = made()
        made = getattr(made, "get_executor", lambda: made)()  # a Client of Dask has one
    except (ImportError, AttributeError, TypeError, RuntimeError) as error:
        # RuntimeError: mpi4py without an MPI library.
        said = error_line(error)[:200]
        raise UsageError(f"engine {name}: {said}; install it or use --engine local") from None
    if not callable(getattr(made, "submit", None)):
        raise UsageError(f"engine {name}: {type(made).__name__} is no concurrent.futures.Executor")
    try:
        yield made
    finally:
        made.shutdown()


# --- summaries that are kept ---


class Cache:
    """A folder of summaries. Two analyses may use it at once: each file is replaced as a whole.

    Nothing that goes wrong with it ends an analysis: ``problem`` says it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.problem: str | None = None

    def read(self, files: Files) -> dict[str, Any] | None:
        """The summary if the files have not changed since."""
        if self._folder is None or files.running:
            return None
        try:
            content = read_file(self._folder / _kept_name(files), _MAX_BYTES, follow=False)
        except FormatError:
            return None
        head, _, body = content.partition(b"\n")
        # Another call may have kept it under the name that it had below another folder.
        return {**json.loads(body), "name": files.name} if head == _head(files, body) else None

    def write(self, files: Files, summary: dict[str, Any]) -> None:
        if self._folder is None or files.running:
            return
        path = self._folder / _kept_name(files)
        # With the modes of the user's umask: a team may share the folder, so `replace_file` does not fit.
        part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
        body = encoded(summary)
        if len(body) + 512 > _MAX_BYTES:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_bytes(_head(files, body) + b"\n" + body)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True) if self._folder.is_dir() else None
            self.problem = f"summaries are not kept in {self._folder}: {error.strerror or error_line(error)}"
            self._folder = None


def encoded(summary: dict[str, Any]) -> bytes:
    return json.dumps(summary, separators=(",", ":"), allow_nan=False).encode()


def _head(files: Files, body: bytes) -> bytes:
    """A summary of another version, of files that have changed, or one that is damaged has another one."""
    state = base64.b64encode(files.state.encode(errors="surrogateescape")).decode()
    return f"headrace-summary {_summary.VERSION} {state} {zlib.crc32(body)}".encode()


def _kept_name(files: Files) -> str:
    return f"{hashed(files.identity)[:32]}.json"


def default_cache(path: str) -> Path | None:
    """The folder of kept summaries unless the user names one; None behind a URL.

    In this user's cache: reading changes nothing in the folder.
    """
    given = path.removeprefix("file://")
    return None if is_url(given) else Path(user_cache("cluster", hashed(os.path.realpath(given))[:32]))
