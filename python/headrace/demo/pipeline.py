"""The demo's input pipeline: read, decode, resize, batch, in threads that queues connect."""

from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

import headrace as hr
from headrace.demo.subject import Loader, Subject

BATCH = 8
SIDE = 224


@hr.operator("read", kind="source")
def read(path: Path) -> bytes:
    return path.read_bytes()


@hr.operator("decode")
def decode(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@hr.operator("resize")
def resize(image: Image.Image) -> np.ndarray:
    array: np.ndarray = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0))
    return array


@hr.operator("batch", kind="batch")
def make_batch(arrays: list[np.ndarray]) -> np.ndarray:
    batch: np.ndarray = np.stack(arrays)
    return batch


class ImagePipeline:
    """Batches of decoded images until the time is up. ``decode_workers`` is what the demo changes."""

    def __init__(self, paths: list[Path], decode_workers: int, seconds: float) -> None:
        self.paths = paths
        self.decode_workers = decode_workers
        self.deadline = time.monotonic() + seconds
        self.encoded: hr.Queue[Any] = hr.Queue(8, name="encoded")
        self.images: hr.Queue[Any] = hr.Queue(4, name="decoded")
        self.arrays: hr.Queue[Any] = hr.Queue(2 * BATCH, name="resized")
        self.batches: hr.Queue[Any] = hr.Queue(4, name="batches")

    def consumer(self) -> Iterator[np.ndarray]:
        """Starts the threads; what the training loop iterates."""
        self._start(self._read_files, 1, self.encoded)
        self._start(self._decode_images, self.decode_workers, self.images)
        self._start(self._resize_images, 1, self.arrays)
        self._start(self._make_batches, 1, self.batches)
        while (batch := self.batches.get()) is not None:
            yield batch

    def _start(self, body: object, workers: int, output: hr.Queue[Any]) -> None:
        """``workers`` threads of one stage; the last one to finish passes the end on."""
        left = itertools.count(workers - 1, -1)

        def run() -> None:
            body()  # type: ignore[operator]
            if next(left) == 0:
                output.put(None)

        for number in range(workers):
            threading.Thread(target=run, name=f"demo-{number}", daemon=True).start()

    def _read_files(self) -> None:
        for path in itertools.cycle(self.paths):
            if time.monotonic() > self.deadline:
                return
            self.encoded.put(read(path))

    def _decode_images(self) -> None:
        while (data := self.encoded.get()) is not None:
            self.images.put(decode(data))
        self.encoded.put(None)

    def _resize_images(self) -> None:
        while (image := self.images.get()) is not None:
            self.arrays.put(resize(image))
        self.arrays.put(None)

    def _make_batches(self) -> None:
        waiting: list[np.ndarray] = []
        while (array := self.arrays.get()) is not None:
            waiting.append(array)
            if len(waiting) == BATCH:
                self.batches.put(make_batch(waiting))
                waiting = []


def _start(paths: list[Path], workers: int, seconds: float, run: Path) -> Loader:
    pipeline = ImagePipeline(paths, workers, seconds)
    return cast(Loader, hr.wrap(pipeline.consumer(), name="jpegs", run=run))


SUBJECT = Subject(
    told="JPEG files are read, decoded, resized and batched in threads",
    workers="decode worker",
    parameter="decode.workers",
    batch=BATCH,
    step_s=0.06,
    seconds=12.0,
    start=_start,
)
