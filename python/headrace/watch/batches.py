"""The batches that watched loops take: which step, which samples, which worker."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple


class Taken(NamedTuple):
    """A batch, and where it comes from."""

    loader: str
    #: Batches that this loader's loops took before it, over all epochs.
    step: int
    #: From 0.
    epoch: int
    #: Dataset index of each row; None: not known.
    indices: list[int] | None
    #: -1: not known.
    worker: int
    batch: Any


class _Last(threading.local):
    taken: Taken | None = None


_last = _Last()


def last_taken() -> Taken | None:
    """The batch that a watched loop of this thread took last."""
    return _last.taken
