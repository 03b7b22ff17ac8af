"""`hr.wrap(queue)`: producers in threads, coroutines, forked and spawned processes."""

import asyncio
import contextlib
import multiprocessing
import pickle
import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError

_STEPS = 40


def produce(into: Any, seconds: float, count: int) -> None:
    for number in range(count):
        time.sleep(seconds)
        into.put(number)


def take(from_: Any, seconds: float, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        taken.append(from_.get())
        time.sleep(seconds)
    return taken


def threads(tmp_path: Path, produces_s: float, trains_s: float) -> Any:
    samples: queue.Queue[int] = queue.Queue(4)
    assert hr.wrap(samples, run=tmp_path / "run") is samples
    thread = threading.Thread(target=produce, args=(samples, produces_s, _STEPS))
    thread.start()
    assert take(samples, trains_s, _STEPS) == list(range(_STEPS))
    thread.join()
    return samples.report()  # type: ignore[attr-defined]


def processes(tmp_path: Path, produces_s: float, trains_s: float, method: str = "fork") -> Any:
    context = multiprocessing.get_context(method)
    samples: Any = hr.wrap(context.Queue(4), name="samples", run=tmp_path / "run")
    process = context.Process(target=produce, args=(samples, produces_s, _STEPS))
    process.start()
    assert take(samples, trains_s, _STEPS) == list(range(_STEPS))
    process.join()
    return samples.report()


def coroutines(tmp_path: Path, produces_s: float, trains_s: float) -> Any:
    async def generate(into: Any) -> None:
        for number in range(_STEPS):
            await asyncio.sleep(produces_s)
            await into.put(number)

    async def main() -> Any:
        samples: Any = hr.wrap(asyncio.Queue(4), name="samples", run=tmp_path / "run")
        task = asyncio.create_task(generate(samples))
        for number in range(_STEPS):
            assert await samples.get() == number
            await asyncio.sleep(trains_s)
        await task
        return samples.report()

    return asyncio.run(main())


KINDS = {"threads": threads, "processes": processes, "coroutines": coroutines}


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_producer_is_named(tmp_path: Path, kind: str) -> None:
    report = KINDS[kind](tmp_path, 0.02, 0.004)
    assert report.diagnosis.kind == "input_bound", str(report)
    assert report.diagnosis.cause in ("too_few_workers", "serial_operator"), str(report)
    assert report.diagnosis.operator in ("produce", "generate")
    assert report.profile.sink.steps == _STEPS
    [samples] = report.profile.queues
    assert samples.gets == _STEPS
    assert samples.empty_share > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_slow_trainer_the_samples_are_stale_and_nothing_is_advised(tmp_path: Path, kind: str) -> None:
    report = KINDS[kind](tmp_path, 0.002, 0.02)
    assert report.diagnosis.kind == "not_input_bound", str(report)
    assert not report.diagnosis.advice
    [samples] = report.profile.queues
    assert samples.item_age.p50_s > 2 * report.profile.sink.step_s, str(report)
    assert "before training takes it" in str(report)


def test_spawned_processes_record_what_they_put(tmp_path: Path) -> None:
    report = processes(tmp_path, 0.02, 0.004, "spawn")
    assert report.diagnosis.operator == "produce", str(report)
    assert [each.name for each in report.profile.operators] == ["produce"]


def test_a_wrapped_queue_stays_what_it_is(tmp_path: Path) -> None:
    bare = multiprocessing.get_context("spawn").Queue(3)
    kind = type(bare)
    wrapped: Any = hr.wrap(bare, name="samples", run=tmp_path / "run")
    assert wrapped is bare
    assert isinstance(wrapped, kind)
    assert type(wrapped).__name__ == kind.__name__
    with pytest.raises(RuntimeError, match="inheritance"):
        pickle.dumps(wrapped)  # as a bare one
    with pytest.raises(queue.Empty):
        wrapped.get(timeout=0.01)
    assert hr.wrap(wrapped) is wrapped
    wrapped.put("one")
    assert wrapped.get() == "one"
    wrapped.close()


def test_ages_of_a_queue_that_is_not_first_in_first_out_are_unknown(tmp_path: Path) -> None:
    samples: queue.LifoQueue[int] = queue.LifoQueue(4)
    hr.wrap(samples, run=tmp_path / "run")
    thread = threading.Thread(target=produce, args=(samples, 0.001, _STEPS))
    thread.start()
    take(samples, 0.004, _STEPS)
    thread.join()
    report = samples.report()  # type: ignore[attr-defined]
    assert report.profile.queues[0].item_age is None


def test_what_cannot_be_hooked_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"hr\.Queue\(\) in its place"):
        hr.wrap(queue.SimpleQueue())
    with pytest.raises(UsageError, match=r"iterate hr\.wrap"):
        hr.wrap(queue.Queue(), watch=True)


def test_without_a_recording_the_queue_is_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE", "0")
    samples: queue.Queue[int] = queue.Queue()
    assert hr.wrap(samples) is samples
    assert "put" not in vars(samples)


def poll(from_: Any, timeout: float) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return from_.get(timeout=timeout)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_gets_that_time_out_are_one_wait_with_the_one_that_follows(tmp_path: Path, kind: str) -> None:
    bare: Any = queue.Queue(4) if kind == "threads" else multiprocessing.Queue(4)
    samples = hr.wrap(bare, name="samples", run=tmp_path / "run")
    starts = threading.Thread if kind == "threads" else multiprocessing.Process
    starts(target=produce, args=(samples, 0.04, _STEPS), daemon=True).start()
    for _ in range(_STEPS):
        poll(samples, 0.01)
        time.sleep(0.004)
    report = samples.report()
    assert report.profile.sink.steps == _STEPS
    assert report.diagnosis.operator == "produce", str(report)
    assert report.profile.sink.wait_share > 0.7


def test_a_get_that_does_not_wait_is_no_wait(tmp_path: Path) -> None:
    samples: Any = hr.wrap(queue.Queue(4), name="samples", run=tmp_path / "run")
    threading.Thread(target=produce, args=(samples, 0.02, _STEPS), daemon=True).start()
    for _ in range(200):
        with contextlib.suppress(queue.Empty):
            samples.get_nowait()
        time.sleep(0.004)  # trains on what it has
    assert samples.report().diagnosis.kind == "not_input_bound", str(samples.report())
