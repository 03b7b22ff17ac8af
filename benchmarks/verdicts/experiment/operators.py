"""Operators of real work, each of another nature: what it computes, reads or waits for, once per call.

An operator does its work `times` times for each item, on inputs of its own that are made when it is made. It
passes on (index, array). `remembered` gives the same without the work.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import json
import os
import pickle
import random
import re
import socket
import sqlite3
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image

Sample = tuple[int, Any]

#: Different inputs of an operator.
INPUTS = 16
_TEXT = "the quick brown fox jumps over a lazy dog while seven wizards forge 42 quartz daggers by moonlight"
_WORDS = _TEXT.split()


class Operator:
    """`once` is the work; `delay_s` is what the operators that wait are given instead of a count."""

    waits: ClassVar[bool] = False

    def __init__(self, folder: Path, rng: random.Random, arrays: list[Any]) -> None:
        self.folder = folder
        self.times = 1
        self.delay_s = 0.0
        self._arrays = arrays
        self.prepare(rng)

    @property
    def name(self) -> str:
        return type(self).__name__

    def prepare(self, rng: random.Random) -> None:
        raise NotImplementedError

    def once(self, index: int) -> Any:
        raise NotImplementedError

    def __call__(self, sample: Sample) -> Sample:
        index, _ = sample
        for turn in range(self.times):
            self.once((index + turn) % INPUTS)
        return index, self._arrays[index % len(self._arrays)]

    def remembered(self, sample: Sample) -> Sample:
        index, _ = sample
        return index, self._arrays[index % len(self._arrays)]


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words))


def _picture(rng: random.Random, side: int) -> Image.Image:
    """Smooth with some noise, so that it compresses as photographs do."""
    across, down = np.meshgrid(np.arange(side), np.arange(side))
    noise = np.frombuffer(rng.randbytes(side * side * 3), np.uint8).reshape(side, side, 3) // 8
    planes = [across * rng.random(), down * rng.random(), (across + down) * rng.random()]
    return Image.fromarray((np.stack(planes, 2) + noise).astype(np.uint8))


# --- C code without the interpreter lock ---


class Inflate(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [zlib.compress(_text(rng, 4000).encode()) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return zlib.decompress(self._inputs[index])


class Bunzip(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [bz2.compress(_text(rng, 400).encode()) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return bz2.decompress(self._inputs[index])


class Digest(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [rng.randbytes(100_000) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return hashlib.sha256(self._inputs[index]).digest()


class DecodeJpeg(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = []
        for _ in range(INPUTS):
            file = io.BytesIO()
            _picture(rng, 128).save(file, "JPEG", quality=85)
            self._inputs.append(file.getvalue())

    def once(self, index: int) -> Any:
        return Image.open(io.BytesIO(self._inputs[index])).convert("RGB")


class Resize(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [_picture(rng, 160) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return self._inputs[index].resize((96, 96), Image.Resampling.BICUBIC)


class Normalize(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [np.frombuffer(rng.randbytes(120_000), np.uint8) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        pixels = self._inputs[index].astype(np.float32)
        return np.sqrt((pixels - 127.5) / 63.7 + 3)


class Spectrum(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [np.frombuffer(rng.randbytes(16_384), np.int8).astype(float) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return np.abs(np.fft.rfft(self._inputs[index]))


# --- C code that keeps the lock ---


class ParseJson(Operator):
    def prepare(self, rng: random.Random) -> None:
        def record() -> dict[str, Any]:
            return {"id": rng.random(), "text": _text(rng, 12), "boxes": [[rng.random()] * 4] * 6}

        self._inputs = [json.dumps([record() for _ in range(12)]) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return json.loads(self._inputs[index])


class Match(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._pattern = re.compile(r"\b(\w+)\s+(?:over|while|by)\s+(\w+)|\d{2}")
        self._inputs = [_text(rng, 250) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        return self._pattern.findall(self._inputs[index])


class Unpickle(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [
            pickle.dumps([(rng.random(), _text(rng, 3), number) for number in range(150)])
            for _ in range(INPUTS)
        ]

    def once(self, index: int) -> Any:
        return pickle.loads(self._inputs[index])


# --- Python ---


class Tokenize(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [_text(rng, 250) for _ in range(INPUTS)]
        self._ids = {word: number for number, word in enumerate(_WORDS)}

    def once(self, index: int) -> Any:
        tokens = []
        for word in self._inputs[index].split():
            known = self._ids.get(word, 0)
            tokens.append(known if len(word) < 6 else known + len(self._ids))
        return tokens


class EditDistance(Operator):
    def prepare(self, rng: random.Random) -> None:
        self._inputs = [(_text(rng, 4)[:20], _text(rng, 4)[:20]) for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        first, second = self._inputs[index]
        row = list(range(len(second) + 1))
        for above, letter in enumerate(first, 1):
            diagonal, row[0] = row[0], above
            for column, other in enumerate(second, 1):
                cost = min(row[column] + 1, row[column - 1] + 1, diagonal + (letter != other))
                diagonal, row[column] = row[column], cost
        return row[-1]


# --- files and data bases ---


class ReadFile(Operator):
    """The page cache is asked to drop what was read, so the next read goes to the disk where there is one."""

    def prepare(self, rng: random.Random) -> None:
        self._paths = [self.folder / f"read-{number}.bin" for number in range(INPUTS)]
        for path in self._paths:
            path.write_bytes(rng.randbytes(200_000))
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def once(self, index: int) -> Any:
        with self._paths[index].open("rb") as file:
            content = file.read()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return content


class ReadCached(Operator):
    """Small reads at random places of a file in the page cache."""

    def prepare(self, rng: random.Random) -> None:
        self._path = self.folder / "cached.bin"
        self._path.write_bytes(rng.randbytes(4_000_000))
        self._places = [[rng.randrange(3_900_000) for _ in range(40)] for _ in range(INPUTS)]

    def once(self, index: int) -> Any:
        with self._path.open("rb", buffering=0) as file:
            return [os.pread(file.fileno(), 4096, place) for place in self._places[index]]


class QueryRows(Operator):
    """A connection per thread, as SQLite wants it."""

    def prepare(self, rng: random.Random) -> None:
        self._path = self.folder / "rows.sqlite"
        self._here = threading.local()
        base = sqlite3.connect(self._path)
        base.execute("create table rows (id integer primary key, part integer, body text)")
        rows = ((number, rng.randrange(INPUTS), _text(rng, 20)) for number in range(3000))
        base.executemany("insert into rows values (?, ?, ?)", rows)
        base.commit()
        base.close()

    def once(self, index: int) -> Any:
        here = self._here
        if getattr(here, "pid", 0) != os.getpid():
            here.base, here.pid = sqlite3.connect(self._path), os.getpid()
        wanted = "select id, body from rows where part = ? order by body limit 60"
        return here.base.execute(wanted, (index,)).fetchall()


# --- libraries with threads of their own ---


class Project(Operator):
    """NumPy's BLAS, with as many threads as it starts by itself."""

    def prepare(self, rng: random.Random) -> None:
        self._weights = np.frombuffer(rng.randbytes(256 * 256), np.int8).reshape(256, 256).astype(np.float32)

    def once(self, index: int) -> Any:
        return self._weights @ self._weights


class Convolve(Operator):
    """Torch, with the threads that it has in this process (one in a DataLoader's worker)."""

    def prepare(self, rng: random.Random) -> None:
        self._image = torch.zeros(1, 3, 96, 96)
        self._kernel = torch.zeros(8, 3, 5, 5)

    def once(self, index: int) -> Any:
        return torch.nn.functional.conv2d(self._image, self._kernel)


# --- waiting ---


class Fetch(Operator):
    """Asks a server on this machine, which answers after `delay_s`; a connection per thread."""

    waits = True
    port: ClassVar[int] = 0

    def prepare(self, rng: random.Random) -> None:
        self._here = threading.local()

    def once(self, index: int) -> Any:
        here = self._here
        if getattr(here, "pid", 0) != os.getpid():
            here.connection, here.pid = socket.create_connection(("127.0.0.1", self.port)), os.getpid()
            here.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        here.connection.sendall(f"{self.delay_s * (0.9 + 0.2 * index / INPUTS):.9f}\n".encode())
        answer = b""
        while len(answer) < 1024:
            answer += here.connection.recv(4096)
        return answer


ALL: dict[str, Callable[..., Operator]] = {
    each.__name__: each
    for each in (
        Inflate, Bunzip, Digest, DecodeJpeg, Resize, Normalize, Spectrum, ParseJson, Match, Unpickle,
        Tokenize, EditDistance, ReadFile, ReadCached, QueryRows, Project, Convolve, Fetch,
    )
}  # fmt: skip
