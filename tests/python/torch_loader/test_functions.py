"""Which functions take the time of what a DataLoader runs: a few early batches tell."""

import sys
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import headrace as hr
from headrace import _core

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")


#: Let virtual time pass in the function that calls them.
READ = partial(_core.advance_virtual_time, 3_000_000, 0)
DECODE = partial(_core.advance_virtual_time, 5_000_000, 5_000_000)
COLLATE = partial(_core.advance_virtual_time, 4_000_000, 0)
TOKENIZE = partial(_core.advance_virtual_time, 380_000_000, 380_000_000)


def read_file() -> None:
    if data.get_worker_info() is None:
        READ()
    else:
        time.sleep(0.003)


def decode() -> int:
    if data.get_worker_info() is None:
        DECODE()
        return 0
    total = 0
    for number in range(60_000):
        total += number * number
    return total


def load() -> Any:
    read_file()
    decode()
    return torch.zeros(1)


class Images(data.Dataset):  # type: ignore[misc, name-defined]
    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> Any:
        return load()


class Fetched(Images):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [load() for _ in indices]


class Stream(data.IterableDataset):  # type: ignore[misc, name-defined]
    def __iter__(self) -> Iterator[Any]:
        for _ in range(48):
            yield load()


def functions(loader: Any, op: str) -> dict[str, float]:
    wrapped = hr.wrap(loader)
    for _ in wrapped:
        pass
    found = {each.name: each for each in wrapped.report().profile.operators}
    return {
        function.name.partition(" (test_functions.py:")[0]: function.share for function in found[op].functions
    }


@pytest.mark.parametrize("dataset", [Images, Fetched, Stream])
def test_the_time_goes_to_the_functions_that_take_it(dataset: type) -> None:
    shares = functions(data.DataLoader(dataset(), 2), dataset.__name__)
    assert shares == {"decode": pytest.approx(5 / 8, abs=0.01), "read_file": pytest.approx(3 / 8, abs=0.01)}


@pytest.mark.parametrize("dataset", [Images, Fetched, Stream])
def test_workers_tell_their_functions(dataset: type) -> None:
    """How long each takes is real time, and not this test's matter."""
    shares = functions(data.DataLoader(dataset(), 2, num_workers=2), dataset.__name__)
    assert {"time.sleep in read_file", "decode"} <= shares.keys()
    assert sum(shares.values()) <= 1.01


def test_collating_has_its_own_functions() -> None:
    def slow_collate(items: list[Any]) -> Any:
        COLLATE()
        return torch.stack(items)

    # 2 bytes a character, and one before them: the limit of 56 bytes is within a character.
    name = "x" + "\u00e4" * 40
    slow_collate.__code__ = slow_collate.__code__.replace(co_name=name)
    if sys.version_info >= (3, 11):
        slow_collate.__code__ = slow_collate.__code__.replace(co_qualname=name)
    shares = functions(data.DataLoader(Images(), 2, collate_fn=slow_collate), "slow_collate")
    assert shares == {"x" + "\u00e4" * 27: pytest.approx(1)}


def test_fast_batches_are_not_sampled() -> None:
    assert functions(data.DataLoader(data.TensorDataset(torch.zeros(64, 1)), 2), "TensorDataset") == {}


def test_one_batch_in_many_that_does_all_the_work_is_followed() -> None:
    def tokenize() -> None:
        TOKENIZE()

    class Blocks(Images):
        def __len__(self) -> int:
            return 192

        def __getitem__(self, index: int) -> Any:
            _core.advance_virtual_time(100_000, 0)
            if index % 64 == 40:
                tokenize()
            return torch.zeros(1)

    shares = functions(data.DataLoader(Blocks(), 2), "Blocks")
    assert shares == {"tokenize": pytest.approx(0.98, abs=0.02)}


def test_a_profiler_of_the_user_stays_in_its_place() -> None:
    calls: list[str] = []

    def profiler(frame: Any, event: str, argument: Any) -> None:
        calls.append(event)

    sys.setprofile(profiler)
    try:
        shares = functions(data.DataLoader(Images(), 2), "Images")
        kept = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert kept is profiler
    assert shares == {}
    assert "c_call" in calls


def test_a_profiler_that_the_dataset_sets_stays_set() -> None:
    class Profiled(Images):
        def __getitem__(self, index: int) -> Any:
            sys.setprofile(lambda *_: None)
            return load()

    try:
        functions(data.DataLoader(Profiled(), 2), "Profiled")
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)


def test_nothing_is_followed_after_the_loop() -> None:
    functions(data.DataLoader(Images(), 2), "Images")
    assert sys.getprofile() is None
    assert threading.getprofile() is None if hasattr(threading, "getprofile") else True


def test_what_a_sampled_batch_made_is_let_go() -> None:
    class Row(list[int]):
        pass

    rows: list[weakref.ref[Row]] = []

    class Rows(Images):
        def __getitem__(self, index: int) -> Any:
            row = Row()
            row.append(index)
            rows.append(weakref.ref(row))
            return load()

    iterator = iter(hr.wrap(data.DataLoader(Rows(), 2)))
    for _ in range(8):
        next(iterator)
    assert len(rows) == 16
    assert not any(row() for row in rows)


def test_the_exception_of_a_sampled_item_is_the_users_own() -> None:
    class Broken(Images):
        def __getitem__(self, index: int) -> Any:
            if index == 5:
                raise KeyError("item 5")
            return load()

    with pytest.raises(KeyError, match="item 5"):
        functions(data.DataLoader(Broken(), 2), "Broken")


def test_the_report_names_them() -> None:
    wrapped = hr.wrap(data.DataLoader(Images(), 2))
    for _ in wrapped:
        pass
    report = wrapped.report()
    says = {evidence.rule: evidence.says for evidence in report.diagnosis.evidence}
    assert "no transform was found in Images" in says["detail"]
    assert "read_file" in says["functions"]
    assert "read_file" in str(report)
