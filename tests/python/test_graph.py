"""The operator graph follows from who puts to and gets from which queue."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")
ITEMS = 40


class Pipeline:
    """Threads between queues; the last thread of a stage to finish passes the end on."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def spawn(self, body: Callable[..., None], *arguments: Any, workers: int = 1) -> None:
        for _ in range(workers):
            thread = threading.Thread(target=body, args=arguments, daemon=True)
            thread.start()
            self.threads.append(thread)

    def run(self, last: "hr.Queue[Any]", name: str = "loop") -> hr.Report:
        """Loops over what the last queue brings and returns the report."""
        loader: Any = hr.wrap(iter(last.get, None), name=name)
        for _ in loader:
            time.sleep(0.0005)
        for thread in self.threads:
            thread.join(timeout=30)
            assert not thread.is_alive()
        report: hr.Report = loader.report()
        return report


def operator(report: hr.Report, name: str) -> Any:
    found = [one for one in report.profile.operators if one.name == name]
    assert len(found) == 1, (name, [one.name for one in report.profile.operators])
    return found[0]


def names(report: hr.Report) -> list[str]:
    return [one.name for one in report.profile.operators]


def edges(report: hr.Report) -> dict[str, tuple[str, str]]:
    return {one.name: (one.from_, one.to) for one in report.profile.queues}


def made(report: hr.Report, name: str) -> int:
    """Items of a source that is a bare loop: when its first one began is not known, it may be left out."""
    return int(operator(report, name).items)


def read(output: "hr.Queue[Any]", count: int = ITEMS) -> None:
    for number in range(count):
        time.sleep(0.0003)
        output.put(number)
    output.put(None)


def stage(source: "hr.Queue[Any]", output: "hr.Queue[Any]", body: Callable[[Any], Any]) -> None:
    """One generic loop for every stage of a pipeline."""
    while (item := source.get()) is not None:
        output.put(body(item))
    source.put(None)
    output.put(None)


def test_annotated_stages() -> None:
    @hr.operator("fetch", kind="source")
    def fetch(number: int) -> int:
        time.sleep(0.004)
        return number

    @hr.operator("decode")
    def decode(item: int) -> int:
        time.sleep(0.005)
        return item

    def reading(output: Any) -> None:
        for number in range(ITEMS):
            output.put(fetch(number))
        output.put(None)

    pipeline, raw, decoded = Pipeline(), hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="decoded")
    pipeline.spawn(reading, raw)
    pipeline.spawn(stage, raw, decoded, decode)
    report = pipeline.run(decoded)
    assert names(report) == ["fetch", "decode"]
    assert [operator(report, name).kind for name in names(report)] == ["source", "map"]
    assert edges(report) == {"raw": ("fetch", "decode"), "decoded": ("decode", "sink")}
    for name in names(report):
        one = operator(report, name)
        assert (one.items, one.workers, one.fidelity, one.executor) == (ITEMS, 1, "exact", "thread")
        assert one.items_per_batch == pytest.approx(1, abs=0.1)
    assert [parameter.parameter for parameter in operator(report, "decode").parameters] == ["decode.workers"]
    assert [(one.puts, one.gets) for one in report.profile.queues] == [(ITEMS, ITEMS)] * 2


def test_loops_without_annotations_are_named_after_their_functions() -> None:
    def decode(source: Any, output: Any) -> None:
        while (item := source.get()) is not None:
            time.sleep(0.001)
            output.put(item)
        output.put(None)

    pipeline, raw, decoded = Pipeline(), hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="decoded")
    pipeline.spawn(read, raw)
    pipeline.spawn(decode, raw, decoded)
    report = pipeline.run(decoded)
    assert names(report) == ["read", "decode"]
    assert edges(report) == {"raw": ("read", "decode"), "decoded": ("decode", "sink")}
    assert operator(report, "read").kind == "source"
    assert made(report, "read") == ITEMS
    assert operator(report, "decode").items == ITEMS
    assert operator(report, "decode").demand_s >= 0.001


def test_one_generic_loop_at_two_places_is_two_operators() -> None:
    pipeline = Pipeline()
    a, b, c = (hr.Queue[Any](4, name=name) for name in "abc")
    pipeline.spawn(read, a)
    pipeline.spawn(stage, a, b, lambda item: item)
    pipeline.spawn(stage, b, c, lambda item: item)
    report = pipeline.run(c)
    assert sorted(names(report)) == ["read", "stage", "stage#2"]
    graph = edges(report)
    assert graph["a"][0] == "read"
    assert graph["a"][1] == graph["b"][0] != graph["b"][1] == graph["c"][0]
    assert graph["c"][1] == "sink"
    assert all(operator(report, name).items == ITEMS for name in ("stage", "stage#2"))


def test_threads_that_begin_at_different_queues_are_one_operator() -> None:
    def decode(source: Any, output: Any, first: int | None) -> None:
        if first is not None:
            output.put(first)
        while (item := source.get()) is not None:
            time.sleep(0.001)
            output.put(item)
        source.put(None)
        if first is None:
            output.put(None)

    pipeline, raw, decoded = Pipeline(), hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="decoded")
    pipeline.spawn(decode, raw, decoded, None)
    pipeline.spawn(decode, raw, decoded, 7)
    pipeline.spawn(read, raw)
    report = pipeline.run(decoded)
    assert names(report) == ["read", "decode"]
    assert operator(report, "decode").workers == 2
    assert edges(report) == {"raw": ("read", "decode"), "decoded": ("decode", "sink")}


def test_workers_of_one_stage_are_counted_once() -> None:
    @hr.operator("decode")
    def decode(item: int) -> int:
        time.sleep(0.002)
        return item

    pipeline, raw, decoded = Pipeline(), hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="decoded")
    pipeline.spawn(read, raw)
    left = threading.Semaphore(2)

    def decoding() -> None:
        while (item := raw.get()) is not None:
            decoded.put(decode(item))
        raw.put(None)
        if not left.acquire(blocking=False):
            decoded.put(None)

    pipeline.spawn(decoding, workers=3)
    report = pipeline.run(decoded)
    one = operator(report, "decode")
    assert (one.workers, one.items, len(one.per_worker)) == (3, ITEMS, 3)
    assert sum(worker.items for worker in one.per_worker) == ITEMS
    # What three siblings put back to stop each other is neither an item nor an edge.
    assert edges(report)["raw"] == ("read", "decode")
    raw_queue = next(queue for queue in report.profile.queues if queue.name == "raw")
    assert (raw_queue.puts, raw_queue.gets) == (ITEMS, ITEMS)


def test_operators_that_share_a_thread_are_one_segment() -> None:
    def work(item: Any) -> Any:
        time.sleep(0.004)  # most of what the thread does, also where others keep it from its core
        return item

    first, second = hr.operator("first")(work), hr.operator("second")(work)
    pipeline, raw, done = Pipeline(), hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="done")
    pipeline.spawn(read, raw)
    pipeline.spawn(stage, raw, done, lambda item: second(first(item)))
    report = pipeline.run(done)
    assert operator(report, "first").segment is not None
    assert operator(report, "first").segment == operator(report, "second").segment
    assert operator(report, "read").segment != operator(report, "first").segment
    assert edges(report)["raw"][1] == "first"
    assert edges(report)["done"][0] == "second"


def test_fan_in() -> None:
    def read_left(output: Any) -> None:
        for number in range(ITEMS):
            output.put(number)

    def read_right(output: Any) -> None:
        for number in range(ITEMS // 2):
            output.put(number)

    merged = hr.Queue[Any](4, name="merged")
    pipeline = Pipeline()
    pipeline.spawn(read_left, merged)
    pipeline.spawn(read_right, merged)

    def end() -> None:
        for thread in pipeline.threads[:2]:
            thread.join()
        merged.put(None)

    threading.Thread(target=end).start()
    report = pipeline.run(merged)
    assert {"read_left", "read_right"} <= set(names(report))
    assert made(report, "read_left") == ITEMS
    assert made(report, "read_right") == ITEMS // 2
    (queue,) = report.profile.queues
    assert queue.puts == queue.gets == ITEMS + ITEMS // 2
    assert queue.to == "sink"


def test_fan_out() -> None:
    raw, even, odd = (hr.Queue[Any](64, name=name) for name in ("raw", "even", "odd"))

    def route() -> None:
        while (item := raw.get()) is not None:
            (odd if item % 2 else even).put(item)
        even.put(None)
        odd.put(None)

    def drain() -> None:
        while odd.get() is not None:
            pass

    pipeline = Pipeline()
    pipeline.spawn(read, raw)
    pipeline.spawn(route)
    pipeline.spawn(drain)
    report = pipeline.run(even)
    graph = edges(report)
    assert graph["raw"] == ("read", "route")
    assert graph["even"] == ("route", "sink")
    # What does not lead to this loop is none of its operators.
    assert graph["odd"][0] == "route"
    assert "drain" not in names(report)
    assert operator(report, "route").items == ITEMS


def test_batching() -> None:
    @hr.operator("collate", kind="batch")
    def collate(items: list[int]) -> list[int]:
        return items

    raw, batches = hr.Queue[Any](16, name="raw"), hr.Queue[Any](4, name="batches")

    def batching() -> None:
        waiting: list[int] = []
        while (item := raw.get()) is not None:
            waiting.append(item)
            if len(waiting) == 8:
                batches.put(collate(waiting))
                waiting = []
        batches.put(None)

    pipeline = Pipeline()
    pipeline.spawn(read, raw, 160)
    pipeline.spawn(batching)
    report = pipeline.run(batches)
    assert report.profile.sink.steps == 20
    assert made(report, "read") in (159, 160)
    assert operator(report, "read").items_per_batch == pytest.approx(8, rel=0.15)
    assert operator(report, "collate").items == 20
    assert operator(report, "collate").items_per_batch == pytest.approx(1, rel=0.15)


def test_the_main_thread_as_the_source() -> None:
    raw, done = hr.Queue[Any](name="raw"), hr.Queue[Any](name="done")
    pipeline = Pipeline()
    for number in range(ITEMS):
        raw.put(number)
    raw.put(None)
    pipeline.spawn(stage, raw, done, lambda item: item)
    report = pipeline.run(done)
    assert "stage" in names(report)
    assert edges(report)["raw"][1] == "stage"
    assert edges(report)["done"] == ("stage", "sink")
    assert operator(report, "stage").items == ITEMS


def test_lookahead_in_the_training_loop_itself() -> None:
    ahead = hr.Queue[Any](name="ahead")

    def lookahead(items: Iterator[int]) -> Iterator[int]:
        for item in items:
            ahead.put(item)
            if ahead.qsize() == 4:
                yield ahead.get()
        while not ahead.empty():
            yield ahead.get()

    loader: Any = hr.wrap(lookahead(iter(range(ITEMS))))
    assert list(loader) == list(range(ITEMS))
    profile = loader.report().profile
    assert profile.sink.steps == ITEMS
    (queue,) = profile.queues
    assert queue.puts == queue.gets == ITEMS


def test_a_custom_end_mark_is_no_item() -> None:
    end = object()
    q = hr.Queue[Any](4, name="batches")

    def reading() -> None:
        for number in range(ITEMS):
            q.put(number)
        q.put(end)

    loader: Any = hr.wrap(iter(q.get, end))
    thread = threading.Thread(target=reading)
    thread.start()
    assert len(list(loader)) == ITEMS
    thread.join()
    profile = loader.report().profile
    assert (profile.queues[0].puts, profile.queues[0].gets) == (ITEMS, ITEMS)
    assert profile.operators[0].items == ITEMS


def test_queues_can_be_declared_where_threads_do_not_tell() -> None:
    raw, done = hr.Queue[Any](4, name="raw"), hr.Queue[Any](64, name="done")

    @hr.operator("resize", input=raw, output=[done])
    def resize(item: int) -> int:
        return item

    handed: list[Any] = []

    def feeding() -> None:
        # One thread takes and puts, another one works: only the declaration says what belongs together.
        while (item := raw.get()) is not None:
            worker = threading.Thread(target=lambda item=item: handed.append(resize(item)))
            worker.start()
            worker.join()
            done.put(handed.pop())
        done.put(None)

    pipeline = Pipeline()
    pipeline.spawn(read, raw)
    pipeline.spawn(feeding)
    report = pipeline.run(done)
    assert operator(report, "resize").items == ITEMS
    graph = edges(report)
    assert "resize" in graph["raw"][1] or graph["raw"][1] == "feeding"
    assert operator(report, "resize").items_per_batch == pytest.approx(1, abs=0.2)


def test_two_loaders_see_their_own_queues() -> None:
    pipeline = Pipeline()
    train, valid = hr.Queue[Any](4, name="train queue"), hr.Queue[Any](4, name="valid queue")
    pipeline.spawn(read, train)
    first = pipeline.run(train, "train")
    pipeline.spawn(read, valid, 10)
    second = pipeline.run(valid, "valid")
    assert [queue.name for queue in first.profile.queues] == ["train queue"]
    assert [queue.name for queue in second.profile.queues] == ["valid queue"]
    assert (first.profile.sink.steps, second.profile.sink.steps) == (ITEMS, 10)


class EpochOfThreads:
    """Makes its queues and threads anew in every epoch, and holds the queues until the epoch ends."""

    def __iter__(self) -> Iterator[int]:
        raw, decoded = hr.Queue[Any](4, name="raw"), hr.Queue[Any](4, name="decoded")

        def decode() -> None:
            while (item := raw.get()) is not None:
                time.sleep(0.001)
                decoded.put(item)
            decoded.put(None)

        for body, arguments in ((read, (raw,)), (decode, ())):
            threading.Thread(target=body, args=arguments, daemon=True).start()
        while (item := decoded.get()) is not None:
            yield item


def test_dropping_a_queue_takes_nothing_from_it() -> None:
    loader: Any = hr.wrap(EpochOfThreads())
    for _epoch in range(3):
        for _ in loader:
            time.sleep(0.0002)
    report = loader.report()
    # The last queues die in the loop's own thread, inside GetNext: that makes it nobody's consumer.
    assert {name: ends[0] for name, ends in edges(report).items()} == {"raw": "read", "decoded": "decode"}
    assert edges(report)["raw"][1] == "decode"
    assert [(one.puts, one.gets) for one in report.profile.queues] == [(3 * ITEMS, 3 * ITEMS)] * 2
    assert operator(report, "read").states.blocked_in == 0
