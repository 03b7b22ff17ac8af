"""`hr.wrap(queue)`: producers in threads, coroutines, forked and spawned processes."""

import asyncio
import contextlib
import multiprocessing
import pickle
import queue
import threading
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import UsageError
from virtual import sleep, sleep_async

pytest_plugins = ["virtual"]

_STEPS = 40


def produce(into: Any, seconds: float, count: int) -> None:
    for number in range(count):
        sleep(seconds)
        into.put(number)


def take(from_: Any, seconds: float, count: int) -> list[int]:
    taken = []
    for _ in range(count):
        taken.append(from_.get())
        sleep(seconds)
    return taken


def threads(produces_s: float, trains_s: float) -> Any:
    samples: queue.Queue[int] = queue.Queue(4)
    assert hr.wrap(samples) is samples
    thread = threading.Thread(target=produce, args=(samples, produces_s, _STEPS))
    thread.start()
    assert take(samples, trains_s, _STEPS) == list(range(_STEPS))
    thread.join()
    return samples.report()  # type: ignore[attr-defined]


def coroutines(produces_s: float, trains_s: float) -> Any:
    async def generate(into: Any) -> None:
        for number in range(_STEPS):
            await sleep_async(produces_s)
            await into.put(number)

    async def main() -> Any:
        samples: Any = hr.wrap(asyncio.Queue(4), name="samples")
        task = asyncio.create_task(generate(samples))
        for number in range(_STEPS):
            assert await samples.get() == number
            await sleep_async(trains_s)
        await task
        return samples.report()

    return asyncio.run(main())


IN_THIS_PROCESS = pytest.mark.parametrize(
    ("kind", "producer"), [(threads, "produce"), (coroutines, "generate")]
)


@IN_THIS_PROCESS
@pytest.mark.usefixtures("t", "run")
def test_a_slow_producer_is_named(kind: Any, producer: str) -> None:
    report = kind(0.02, 0.004)
    assert report.diagnosis.kind == "input_bound", str(report)
    assert report.diagnosis.cause in ("too_few_workers", "serial_operator"), str(report)
    assert report.diagnosis.operator == producer
    assert report.profile.sink.steps == _STEPS
    assert report.profile.sink.step_s == pytest.approx(0.02)
    [samples] = report.profile.queues
    assert samples.gets == _STEPS
    assert samples.empty_share > 0.99


@IN_THIS_PROCESS
@pytest.mark.usefixtures("t", "run")
def test_of_a_slow_trainer_the_samples_are_stale_and_nothing_is_advised(kind: Any, producer: str) -> None:
    report = kind(0.002, 0.02)
    assert report.diagnosis.kind == "not_input_bound", str(report)
    assert not report.diagnosis.advice
    [samples] = report.profile.queues
    assert samples.item_age.p50_s == pytest.approx(4 * 0.02, rel=0.1), str(report)
    assert "before training takes it" in str(report)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_record_what_they_put(tmp_path: Path, method: str) -> None:
    context = multiprocessing.get_context(method)
    samples: Any = hr.wrap(context.Queue(4), name="samples", run=tmp_path / "run")
    process = context.Process(target=produce, args=(samples, 0, _STEPS))
    process.start()
    assert take(samples, 0, _STEPS) == list(range(_STEPS))
    process.join()
    profile = samples.report().profile
    assert [each.name for each in profile.operators] == ["produce"]
    assert [each.gets for each in profile.queues] == [_STEPS]
    assert profile.sink.steps == _STEPS


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


@pytest.mark.usefixtures("t", "run")
def test_ages_of_a_queue_that_is_not_first_in_first_out_are_unknown() -> None:
    samples: Any = hr.wrap(queue.LifoQueue(4))
    thread = threading.Thread(target=produce, args=(samples, 0.001, _STEPS))
    thread.start()
    take(samples, 0.004, _STEPS)
    thread.join()
    assert samples.report().profile.queues[0].item_age is None


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


@pytest.mark.usefixtures("t", "run")
def test_gets_that_time_out_are_one_wait_with_the_one_that_follows() -> None:
    samples: Any = hr.wrap(queue.Queue(4), name="samples")
    threading.Thread(target=produce, args=(samples, 0.04, _STEPS), daemon=True).start()
    for _ in range(_STEPS):
        for _ in range(2):
            with contextlib.suppress(queue.Empty):
                samples.get(timeout=0)
            sleep(0.01)
        samples.get()
        sleep(0.004)
    report = samples.report()
    assert report.profile.sink.steps == _STEPS
    assert report.diagnosis.operator == "produce", str(report)
    assert report.profile.sink.wait_share == pytest.approx(0.9)


@pytest.mark.usefixtures("t", "run")
def test_a_get_that_does_not_wait_is_no_wait() -> None:
    samples: Any = hr.wrap(queue.Queue(4), name="samples")
    threading.Thread(target=produce, args=(samples, 0.02, _STEPS), daemon=True).start()
    for _ in range(200):
        with contextlib.suppress(queue.Empty):
            samples.get_nowait()
        sleep(0.004)  # trains on what it has
    assert samples.report().diagnosis.kind == "not_input_bound", str(samples.report())
