"""What a dataset holds that a worker process would have another copy of."""

from __future__ import annotations

import abc
import collections
import contextlib
import functools
import hashlib
import io
import itertools
import logging
import mmap
import random
import re
import socket
import sqlite3
import struct
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

from headrace.loaders.torch_dataloader.held_state import (  # noqa: E402
    HeldState,
    file_positions,
    shared_state,
)
from headrace.watch.random_state import generators_of  # noqa: E402

COUNT = 0
RNG = random.Random(1)
LOG = logging.getLogger(__name__)


class Holds:
    """A dataset with something in an attribute."""

    seen = 0

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def __len__(self) -> int:
        return 4


class Slots:
    __slots__ = ("rng",)

    def __init__(self) -> None:
        self.rng = random.Random(1)


def counter() -> Callable[[], int]:
    count = 0

    def following() -> int:
        nonlocal count
        count += 1
        return count

    return following


class UsesGlobals(Holds):
    def __getitem__(self, index: int) -> float:
        global COUNT
        COUNT += 1
        return index + RNG.random()


class UsesClass(Holds):
    def __getitem__(self, index: int) -> int:
        UsesClass.seen += 1
        return index


def add_one(array: Any) -> None:
    array += 1


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "attribute": (lambda: Holds(1), lambda one: setattr(one, "held", 2), "dataset.held"),
    "list": (lambda: Holds([0]), lambda one: one.held.append(one.held.pop() + 1), "dataset.held[0]"),
    "dict": (lambda: Holds([{"n": 0}]), lambda one: one.held[0].update(n=1), "dataset.held[0]['n']"),
    "deque": (lambda: Holds(collections.deque("ab")), lambda one: one.held.rotate(), "dataset.held[0]"),
    "tensor": (lambda: Holds(torch.zeros(2)), lambda one: one.held.add_(1), "dataset.held"),
    "array": (lambda: Holds(numpy.zeros(2)), lambda one: add_one(one.held), "dataset.held"),
    "closure": (lambda: Holds(counter()), lambda one: one.held(), "count"),
    "partial": (lambda: Holds(functools.partial(counter())), lambda one: one.held(), "count"),
    "global": (UsesGlobals, lambda one: one[0], "COUNT"),
    "class": (UsesClass, lambda one: one[0], "UsesClass.seen"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_seen_where_they_are(what: str) -> None:
    make, change, name = CHANGES[what]
    for place in ("dataset", "collate_fn"):
        one = make()
        held = HeldState(one, None) if place == "dataset" else HeldState([], one)
        assert held.changed() == ""
        change(one)
        assert held.changed().startswith(name.replace("dataset", place)), held.changed()


def test_a_worker_may_open_and_cache() -> None:
    dataset = Holds({})
    held = HeldState(dataset, None)
    dataset.held["a"] = 1
    dataset.file = object()  # type: ignore[attr-defined]
    assert held.copied() == ""
    assert held.set_by_init().startswith("its worker_init_fn sets dataset.held")
    dataset.held["a"] = 2
    assert HeldState(dataset, None).copied() == ""
    again = HeldState(dataset, None)
    dataset.held["a"] = 3
    assert "its own copy of dataset.held['a']" in again.copied()


def test_a_dataset_is_not_kept() -> None:
    dataset, items = Holds(1), [1, 2]
    held = HeldState(dataset, print)
    of_items = HeldState(items, None)
    del dataset
    assert held.changed() == "its dataset is gone, so what it held is not known"
    assert of_items.changed() == ""
    items.append(3)
    assert of_items.changed().startswith("dataset")


def test_iterators_are_copied() -> None:
    for held in (itertools.count(), itertools.cycle("ab"), iter([1]), (one for one in "ab")):
        assert "iterator dataset.held" in HeldState(Holds(held), None).copied()


def test_what_forked_workers_would_share(tmp_path: Path) -> None:
    path = tmp_path / "items"
    path.write_bytes(b"0123456789")
    left, right = socket.socketpair()
    with path.open("rb", buffering=0) as file, left, right, ThreadPoolExecutor() as pool:
        for held in (file, left, [{"file": file}], lambda: file):
            assert "is an open file or connection" in shared_state(Holds(held), None)
        assert "runs threads" in shared_state(Holds(pool), None)
        before = file_positions()
        file.read(3)
        assert [name for each, (name, _) in file_positions().items() if each == str(file.fileno())] == [
            "items"
        ]
        assert file_positions()[str(file.fileno())] != before[str(file.fileno())]
    assert shared_state(Holds(file), None) == ""
    assert shared_state(Holds([LOG, sys.stderr, threading.Lock(), torch.zeros(1), 3]), None) == ""


def test_what_a_library_holds_for_its_process() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        assert shared_state(Holds({"db": database}), None).startswith(
            "dataset.held['db'] (Connection) belongs"
        )
    assert "belongs to the process" in shared_state(Holds(hashlib.sha256()), None)


def test_what_a_forked_process_may_read() -> None:
    class Base(abc.ABC):  # noqa: B024 (it is a base of datasets)
        pattern = re.compile("a")

        @property
        def size(self) -> int:
            return 3

    class Own(Base):
        def __getstate__(self) -> None:
            raise TypeError("cannot be pickled")

    held = [mmap.mmap(-1, 8), memoryview(b"a"), {}.keys(), weakref.ref(Base), struct.Struct("i"), Own()]
    held += [
        threading.Condition(),
        threading.local(),
        numpy.zeros(1),
        numpy.random.default_rng(1),
        torch.float32,
    ]
    held += [
        numpy.zeros(3),
        functools.lru_cache(int),
        random.Random(1),
        torch.Generator(),
        torch.nn.Linear(1, 1),
        io.BytesIO(),
    ]
    for one in held:
        assert shared_state(Holds(one), None) == "", one


@pytest.mark.parametrize("held", [RNG.random, Slots(), functools.partial(int, RNG), lambda: RNG])
def test_generators_are_found(held: Any) -> None:
    assert len(list(generators_of(Holds(held)))) == 1


def test_generators_of_globals_and_classes() -> None:
    assert [name for name, _ in generators_of(UsesGlobals())] == ["RNG"]
