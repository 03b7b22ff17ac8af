"""Summaries that are kept, so that a second look reads no rank again and an interrupted analysis goes on."""

from __future__ import annotations

import base64
import os
import secrets
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.cluster._files import Summarised
from headrace.cluster._summary import VERSION, decoded, encoded, kept_name
from headrace.common.folder_files import read_file
from headrace.common.plain import error_line
from headrace.errors import FormatError

#: A summary takes at most 256 kB; a larger file is something else.
_MAX_BYTES = 256 << 10


class Cache:
    """A folder of summaries. Two analyses may use it at once: each file is replaced as a whole.

    Nothing that goes wrong with it ends an analysis: ``problem`` says it.
    """

    def __init__(
        self, folder: Path | None, decode: Callable[[bytes], dict[str, Any] | None] = decoded
    ) -> None:
        """``decode``: None for content that is no summary of this version."""
        self._folder = folder
        self._decode = decode
        self.problem: str | None = None
        self.hits = 0

    def read(self, files: Summarised) -> dict[str, Any] | None:
        """The summary if the files have not changed since."""
        if self._folder is None or files.running:
            return None
        try:
            content = read_file(self._folder / kept_name(files), _MAX_BYTES, follow=False)
        except FormatError:
            return None
        head, _, body = content.partition(b"\n")
        if head != _key(files, body):
            return None
        summary = self._decode(body)
        if summary is not None:
            self.hits += 1
        return summary

    def write(self, files: Summarised, summary: dict[str, Any], stamp: str | None) -> None:
        """``stamp``: of the files before they were read."""
        if self._folder is None or files.running or stamp is None or "problem" in summary:
            return
        path = self._folder / kept_name(files)
        part = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
        try:
            body = encoded(summary)
            if len(body) + 512 > _MAX_BYTES:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_bytes(_head(stamp, body) + b"\n" + body)
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True) if self._folder.is_dir() else None
            self.problem = f"summaries are not kept in {self._folder}: {error.strerror or error_line(error)}"
            self._folder = None


def stamp_of(files: Summarised) -> str | None:
    """None for files that cannot be looked at."""
    try:
        return files.stamp()
    except Exception:  # whatever the file system behind fsspec raises; reading the file says it
        return None


def _key(files: Summarised, body: bytes) -> bytes | None:
    stamp = stamp_of(files)
    return None if stamp is None else _head(stamp, body)


def _head(stamp: str, body: bytes) -> bytes:
    state = base64.b64encode(stamp.encode()).decode()
    return f"headrace-summary {VERSION} {state} {zlib.crc32(body)}".encode()
