"""torchrl's replay buffers: sample() as GetNext, in the loop and in the threads of prefetch."""

import gc
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from recorded_loops import consume, operators, played, run_script
from stored_reports import StoredReports

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
data: Any = pytest.importorskip("torchrl.data", reason="torchrl is not installed")

pytestmark = pytest.mark.usefixtures("run")

ITEM_S = 0.01


def collate(batch: Any) -> Any:
    time.sleep(ITEM_S)
    return batch


def made(prefetch: int, collate_fn: Any = None) -> Any:
    sampler = data.replay_buffers.SamplerWithoutReplacement()
    buffer = data.ReplayBuffer(
        storage=data.LazyTensorStorage(320), sampler=sampler, batch_size=8, prefetch=prefetch or None
    )
    if collate_fn is not None:
        buffer._collate_fn = collate_fn
    buffer.extend(torch.arange(320))
    return buffer


def values(loader: Any) -> list[Any]:
    torch.manual_seed(4)
    return [batch.tolist() for batch in loader]


def test_batches_and_their_order_are_those_of_the_bare_buffer() -> None:
    assert values(hr.wrap(made(0))) == values(made(0)) != []


def test_sampling_in_the_loop(stored: StoredReports) -> None:
    report = stored(lambda: played(made(0, collate), 0.004))
    storage = operators(report)["LazyTensorStorage"]
    assert any("collate" in function.name for function in storage.functions), str(report)
    assert report.diagnosis.cause == "no_overlap"
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("prefetch", 0)


def test_a_buffer_is_not_kept_alive() -> None:
    buffer = made(0, collate)
    loader = hr.wrap(buffer)
    consume(loader, limit=3)
    gone = weakref.ref(buffer)
    del buffer, loader
    gc.collect()
    assert gone() is None


SCRIPT = """
import sys, time, torch
from torchrl.data import LazyTensorStorage, ReplayBuffer

def collate(batch):
    time.sleep(0.02)
    return batch

buffer = ReplayBuffer(storage=LazyTensorStorage(320), batch_size=8, prefetch=2, collate_fn=collate)
buffer.extend(torch.arange(320))
for _ in range(80):
    buffer.sample()
    time.sleep(0.003)
"""


def test_threads_of_prefetch_are_seen_in_unchanged_scripts(tmp_path: Path, stored: StoredReports) -> None:
    report = stored(lambda: run_script(tmp_path, SCRIPT)[1])
    found = operators(report)["LazyTensorStorage"]
    assert found.workers == 2
    assert found.service.p50_s > 0.018
    assert report.diagnosis.cause == "too_few_workers", str(report)
    first = report.diagnosis.advice[0]
    assert (first.parameter, first.from_) == ("prefetch", 2)
    assert report.profile.sink.steps == 80
