"""Which files `Trace.load` is to read: paths, folders, URLs, and ranks named by the caller."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Union

from headrace import _core
from headrace.errors import FormatError, UsageError

#: What `Trace.load` takes.
Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], Mapping[int, Any]]

_ENDINGS = (".json", ".json.gz", ".trace", ".trace.gz")


def is_url(path: str) -> bool:
    """``s3://...``, ``memory://...``: what fsspec opens."""
    return "://" in path and not path.startswith("file://")


def expand(paths: Paths) -> list[str]:
    """The files, folders opened up. UsageError where nothing is given, FormatError for an empty folder."""
    if isinstance(paths, (str, os.PathLike)):
        given = [os.fspath(paths)]
    elif isinstance(paths, Mapping):
        given = [os.fspath(path) for path in paths.values()]
    else:
        given = [os.fspath(path) for path in paths]
    if not given:
        raise UsageError("no trace was given: name a file, a folder or a list of them")
    files = []
    for path in given:
        path = path.removeprefix("file://")
        if not is_url(path) and Path(path).is_dir():
            inside = sorted(str(p) for p in Path(path).iterdir() if p.is_file() and p.name.endswith(_ENDINGS))
            if not inside:
                raise FormatError(path, 0, "a folder with .json or .json.gz traces in it")
            files += inside
        else:
            files.append(path)
    return files


class Loader:
    """Reads files: local ones in parallel; where a URL is among them, one after the other through fsspec."""

    def __init__(self, files: list[str], ranks: list[int], arguments: list[tuple[str, str]]) -> None:
        self.files = files
        self._arguments = arguments
        self._local: _core.TraceLoader | None = None
        if any(is_url(path) for path in files):
            if ranks:
                raise UsageError("{rank: path} takes local files; URLs say their rank themselves")
        else:
            self._local = _core.TraceLoader(files, arguments, ranks)

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes in all, 0 of 0 where nobody knows."""
        return (self._local.bytes_read, self._local.bytes_total) if self._local else (0, 0)

    def load(self) -> _core.TraceSet:
        if self._local:
            return self._local.load()
        try:
            import fsspec
        except ImportError:
            raise UsageError("traces behind a URL need fsspec: pip install fsspec") from None
        with ExitStack() as files:
            opened = [(path, files.enter_context(_opened(path, fsspec))) for path in self.files]
            return _core.load_trace_sources(opened, self._arguments)


class Reopened:
    """A URL's file, to be read again; a local one needs no opening. Close it behind the last reader."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._files = ExitStack()

    def __enter__(self) -> Callable[[], Any] | None:
        return self._open if is_url(self._path) else None

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def _open(self) -> Any:
        import fsspec

        return self._files.enter_context(_opened(self._path, fsspec))


def _opened(path: str, fsspec: Any) -> Any:
    try:
        return fsspec.open(path, "rb").open()
    except Exception as error:  # whatever the file system behind fsspec raises
        raise FormatError(path, 0, f"a file that can be opened: {error}") from error


def loader(files: list[str], paths: Paths, arguments: Mapping[str, str] | None) -> Loader:
    """`files` as `expand` made them of `paths`."""
    ranks = []
    if isinstance(paths, Mapping):
        if len(files) != len(paths):
            raise UsageError("{rank: path} takes one file a rank, no folders")
        ranks = [int(rank) for rank in paths]
    return Loader(files, ranks, list((arguments or {}).items()))
