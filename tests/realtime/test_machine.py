"""What the machine does to workers: cores, threads of libraries, collections, shards, storage."""

from __future__ import annotations

import gc
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.report import Operator, Report

pytest.importorskip("torch", reason="PyTorch is not installed")
data = pytest.importorskip("torch.utils.data")

pytestmark = pytest.mark.usefixtures("run")

BLOCK = os.urandom(1 << 20)


class Items(data.Dataset):  # type: ignore[misc, name-defined]
    """`count` items, each a call of `body`."""

    def __init__(self, count: int, body: Callable[[], Any]) -> None:
        self.count, self.body = count, body

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        self.body()
        return index


def report_of(*args: Any, **kwargs: Any) -> Report:
    """Of a DataLoader with these arguments, in a loop with steps of 1 ms."""
    loader = hr.wrap(data.DataLoader(*args, **kwargs))
    for _ in loader:
        time.sleep(0.001)
    return loader.report()


def dataset_of(report: Report) -> Operator:
    return next(op for op in report.profile.operators if op.kind == "source")


def collect() -> None:
    gc.collect()
    time.sleep(0.002)


@pytest.fixture
def collected() -> Iterator[None]:
    """Collections look at this heap, not at what the tests before have imported."""
    gc.freeze()
    heap = [[i] for i in range(200_000)]
    yield
    gc.unfreeze()
    del heap


@pytest.mark.usefixtures("collected")
def test_collections_in_workers_are_counted_and_named() -> None:
    report = report_of(Items(80, collect), batch_size=4, num_workers=1)
    worker = dataset_of(report).per_worker[0]
    assert 0.3 * worker.busy_s < worker.gc_s <= worker.busy_s
    assert report.diagnosis.cause == "gc_pause"


@pytest.mark.usefixtures("collected")
def test_collections_in_the_loop_are_a_risk() -> None:
    recorded = hr.wrap(data.DataLoader(Items(40, lambda: None), batch_size=1, num_workers=1))
    for _ in recorded:
        gc.collect()
    report = recorded.report()
    assert report.profile.sink.gc_s > 0.3 * report.profile.sink.step_s
    assert "gc_pause" in [risk.risk for risk in report.diagnosis.risks]
    assert "RISKS" in report.to_text()


def breathe() -> None:
    time.sleep(0.01)


def pin(_: int) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_the_affinity_of_workers_is_seen() -> None:
    report = report_of(Items(200, breathe), batch_size=4, num_workers=2, worker_init_fn=pin)
    assert {worker.allowed_cores for worker in dataset_of(report).per_worker} == {1}
    free = report_of(Items(200, breathe), batch_size=4, num_workers=2)
    assert {worker.allowed_cores for worker in dataset_of(free).per_worker} == {len(os.sched_getaffinity(0))}


def compress_in_threads() -> None:
    threads = [threading.Thread(target=zlib.compress, args=(BLOCK[:200_000],)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_of_libraries_count_with_the_process_of_their_worker() -> None:
    report = report_of(Items(240, compress_in_threads), batch_size=4, num_workers=2)
    for worker in dataset_of(report).per_worker:
        assert worker.process_cpu_s is not None
        assert worker.cpu_s is not None
        assert worker.process_cpu_s > 3 * worker.cpu_s
        assert worker.process_threads is not None
        assert worker.process_threads >= 2
    assert report.diagnosis.cause == "oversubscribed"


class Shards(data.IterableDataset):  # type: ignore[misc, name-defined]
    """Items of worker 0 and of the other one."""

    def __init__(self, *items: int) -> None:
        self.items = items

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        for index in range(self.items[info.id]):
            time.sleep(0.002)
            yield index


@pytest.mark.parametrize("items", [(20, 200), (150, 150)])
def test_workers_without_data_left_are_seen(items: tuple[int, int]) -> None:
    report = report_of(Shards(*items), batch_size=4, num_workers=2)
    by_number = {worker.worker_id: worker.out_of_data_s for worker in dataset_of(report).per_worker}
    unequal = items[0] != items[1]
    assert ((by_number[0] - by_number[1]) > 0.3 * report.profile.elapsed_s) == unequal
    assert (report.diagnosis.cause == "shard_imbalance") == unequal


def test_files_in_memory_are_no_wait_for_storage(tmp_path: Path) -> None:
    path = tmp_path / "items"
    path.write_bytes(BLOCK)

    def read() -> None:
        path.read_bytes()
        time.sleep(0.0002)

    report = report_of(Items(3000, read), batch_size=16, num_workers=1)
    op = dataset_of(report)
    assert sum(worker.read_bytes or 0 for worker in op.per_worker) > 100 * len(BLOCK)
    assert sum(worker.storage_bytes or 0 for worker in op.per_worker) < len(BLOCK)
    assert op.storage_wait_s is None or op.storage_wait_s < 0.2 * op.busy_s
    assert report.diagnosis.cause != "storage_bound"


@pytest.mark.skipif(not os.access("/proc/self/io", os.R_OK), reason="the kernel counts no reads")
def test_what_a_thread_reads_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "item"
    path.write_bytes(BLOCK)

    def load(_: int) -> int:
        time.sleep(0.02)
        return len(path.read_bytes())

    pipe = hr.source(range(50)).map(load, name="load")
    assert sum(pipe) == 50 * len(BLOCK)
    (worker,) = next(op for op in pipe.report().profile.operators if op.name == "load").per_worker
    assert worker.read_bytes is not None
    assert worker.read_calls is not None
    # From the first look at the thread on, which is some items after the first one.
    assert 20 * len(BLOCK) < worker.read_bytes < 51 * len(BLOCK)
    assert worker.read_calls >= 20
