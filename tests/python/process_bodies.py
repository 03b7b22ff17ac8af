"""Functions that tests send to worker processes, which import them from here."""

from __future__ import annotations

import collections
import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    x: int
    data: Any


class Labelled:
    def __init__(self, data: Any, label: str) -> None:
        self.data = data
        self.label = label


class StrangeError(Exception):
    """Can be pickled, but not made again."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def double(x: Any) -> Any:
    return 2 * x


def same(x: Any) -> Any:
    return x


def uneven(x: int) -> int:
    time.sleep(0.004 if x % 7 == 0 else 0.0002)
    return 2 * x


def large(x: int) -> Any:
    return np.full(50_000, x, dtype=np.int64)


def pid_of(x: int) -> int:
    time.sleep(0.002)
    return os.getpid()


def fails_at_17(x: int) -> int:
    if x == 17:
        raise KeyError("broken")
    return x


def strange(x: int) -> int:
    raise StrangeError(5, 6)


def unpicklable_error(x: int) -> int:
    error = ValueError("with a lock")
    error.lock = __import__("threading").Lock()  # type: ignore[attr-defined]
    raise error


def unpicklable(x: int) -> Any:
    return lambda: x


def killed_at_30(x: int) -> int:
    if x == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exits_at_5(x: int) -> int:
    if x == 5:
        os._exit(3)
    return x


def killed_once(job: tuple[str, int]) -> int:
    flag, x = job
    if x == 10 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def slow_after_3(x: int) -> int:
    time.sleep(0 if x < 3 else 3600)
    return x


def late_after_3(x: int) -> int:
    time.sleep(0.3 if x == 3 else 0)
    return x


def spin(x: int) -> int:
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        pass
    return x


def sums(x: Any) -> Any:
    return collections.OrderedDict(total=float(x.sum()), writeable=bool(x.flags.writeable))


def tensors(x: int) -> Any:
    import torch

    values = torch.arange(20_000, dtype=torch.float32) + x
    return {
        "large": values,
        "turned": values.reshape(100, 200).t(),
        "half": values.to(torch.bfloat16),
        "small": torch.tensor([x]),
        "scalar": torch.tensor(x),
        "none": torch.empty(0, 3),
        "complex": torch.view_as_complex(values.reshape(-1, 2)).conj(),
        "grad": torch.ones(2000, requires_grad=True),
    }


def array_of(x: int) -> Any:
    return np.full(5000, x, np.float32)


def total(array: Any) -> float:
    return float(array.sum())
