"""The demo's input pipeline: JPEG files are read, decoded, resized and batched by a native pipeline."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import headrace as hr
from headrace.show.demo.run import Subject

BATCH = 8
SIDE = 224


def decode(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def resize(image: Image.Image) -> np.ndarray:
    array: np.ndarray = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0))
    return array


def stack(arrays: list[np.ndarray]) -> np.ndarray:
    batch: np.ndarray = np.stack(arrays)
    return batch


def images(paths: list[Path], decode_workers: int, seconds: float) -> hr.Pipeline[np.ndarray]:
    """Batches of decoded images until the time is up. ``decode_workers`` is what the demo changes."""
    deadline = time.monotonic() + seconds

    def read() -> Iterator[bytes]:
        for path in itertools.cycle(paths):
            if time.monotonic() > deadline:
                return
            yield path.read_bytes()

    return (
        hr.pipeline.generator(read, capacity=8)
        .map(decode, workers=decode_workers, capacity=8)
        .map(resize, capacity=2 * BATCH)
        .batch(BATCH, drop_last=True, collate=stack, name="batch")
        .prefetch(4)
    )


def _start(paths: list[Path], workers: int, seconds: float, run: Path) -> Any:
    return hr.wrap(images(paths, workers, seconds), name="jpegs", run=run)


SUBJECT = Subject(
    told="JPEG files are read, decoded, resized and batched by a native pipeline",
    workers="decode worker",
    parameter="decode.workers",
    batch=BATCH,
    step_s=0.06,
    seconds=12.0,
    start=_start,
)
