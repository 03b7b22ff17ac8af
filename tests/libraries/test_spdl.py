"""SPDL's pipelines: stages, queues and verdicts in SPDL's own words."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders.spdl import probes
from recorded_loops import Numbers, assert_seen_from_outside, operators, run_script, sleeper
from stored_reports import StoredReports

spdl = pytest.importorskip("spdl.pipeline", reason="spdl is not installed: pip install headrace[frameworks]")

pytestmark = pytest.mark.usefixtures("run")


def consume(pipeline: Any, seconds: float = 0) -> list[Any]:
    items = []
    with pipeline.auto_stop():
        for item in pipeline:
            items.append(item)
            if seconds:
                time.sleep(seconds)
    return items


def played(pipeline: Any, seconds: float) -> hr.Report:
    loader: Any = hr.wrap(pipeline)
    consume(loader, seconds)
    return loader.report()


def four_stages(
    *, source: float = 0, decode: float = 0, concurrency: int = 1, collate: float = 0, batches: int = 40
) -> Any:
    def gather(items: list[int]) -> list[int]:
        time.sleep(collate)
        return items

    builder = spdl.PipelineBuilder().add_source(Numbers(batches * 4, source))
    builder = builder.pipe(sleeper(decode), concurrency=concurrency).aggregate(4).pipe(gather)
    return builder.add_sink(3).build(num_threads=4)


def test_every_stage_and_queue_is_shown() -> None:
    loader = hr.wrap(four_stages(decode=0.004, concurrency=2))
    batches = consume(loader, 0.001)
    assert sorted(itertools.chain(*batches)) == list(range(160))
    profile = loader.report().profile
    shown = [(op.name, op.kind, op.workers) for op in profile.operators]
    assert shown == [
        ("Numbers", "source", 1),
        ("decode", "map", 2),
        ("aggregate(4)", "batch", 1),
        ("gather", "map", 1),
        ("add_sink", "prefetch", 1),
    ]
    ends = [(q.name, q.from_operators, q.to_operators, q.to_sink, q.capacity) for q in profile.queues]
    assert ends == [
        ("Numbers", [0], [1], False, 2),
        ("decode", [1], [2], False, 2),
        ("aggregate(4)", [2], [3], False, 2),
        ("gather", [3], [4], False, 2),
        ("sink_queue", [4], [], True, 3),
    ]
    assert [q.puts for q in profile.queues] == [160, 160, 40, 40, 40]
    decode = operators(loader.report())["decode"]
    assert decode.items == 160
    assert decode.service.p50_s > 0.0035
    assert decode.items_per_batch == pytest.approx(4, rel=0.1)
    assert decode.executor == "thread"
    model = profile.model
    assert (model.framework, len(model.stages), len(model.buffers)) == ("spdl", 5, 5)
    assert "decode.concurrency=2" in str(loader.report())


def test_a_slow_source(stored: StoredReports) -> None:
    diagnosis = stored(lambda: played(four_stages(source=0.005), 0.001)).diagnosis
    assert (diagnosis.kind, diagnosis.operator, diagnosis.cause) == (
        "input_bound",
        "Numbers",
        "serial_operator",
    )


def test_a_slow_pipe_gets_more_concurrency(stored: StoredReports) -> None:
    report = stored(lambda: played(four_stages(decode=0.005), 0.001))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "too_few_workers")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("decode.concurrency", 1)
    assert "; set it in .pipe()" in advice.text
    assert report.what_if(**{"decode.concurrency": 4})["step_s"] < 0.6 * report.profile.sink.step_s


def test_a_slow_collate(stored: StoredReports) -> None:
    diagnosis = stored(lambda: played(four_stages(collate=0.02), 0.001)).diagnosis
    assert (diagnosis.kind, diagnosis.operator) == ("input_bound", "gather")


def test_a_slow_training_step(stored: StoredReports) -> None:
    report = stored(lambda: played(four_stages(), 0.02))
    assert report.diagnosis.kind == "not_input_bound"
    assert report.profile.queues[-1].full_share > 0.5


def test_the_thread_pool_limits() -> None:
    builder = spdl.PipelineBuilder().add_source(Numbers(40)).pipe(sleeper(0.002), concurrency=8)
    loader = hr.wrap(builder.add_sink(3).build(num_threads=2))
    consume(loader)
    profile = loader.report().profile
    assert profile.operators[1].workers == 2
    assert profile.model.stages[1].widened_by == "num_threads"


def test_a_pool_that_several_pipes_share(stored: StoredReports) -> None:
    def resize(item: int) -> int:
        time.sleep(0.006)
        return item

    builder = spdl.PipelineBuilder().add_source(Numbers(240)).pipe(sleeper(0.006), concurrency=3)
    builder = builder.pipe(resize, concurrency=3).aggregate(4)
    report = stored(lambda: played(builder.add_sink(3).build(num_threads=3), 0.001))
    decode, shrink = operators(report)["decode"], operators(report)["resize"]
    assert (decode.workers, shrink.workers) == (3, 3)
    assert decode.segment == shrink.segment >= 0
    assert report.diagnosis.cause == "too_few_workers"
    assert (report.diagnosis.advice[0].parameter, report.diagnosis.advice[0].from_) == ("num_threads", 3)


def test_generators_async_functions_and_order() -> None:
    def twice(item: int) -> Iterator[int]:
        for _ in range(2):
            time.sleep(0.001)
            yield item

    async def fetch(item: int) -> int:
        await asyncio.sleep(0.004)
        return item

    async def thrice(item: int) -> AsyncIterator[int]:
        for _ in range(3):
            await asyncio.sleep(0.001)
            yield item

    builder = spdl.PipelineBuilder().add_source(Numbers(20)).pipe(twice).pipe(fetch, concurrency=4)
    builder = builder.pipe(thrice).aggregate(3).disaggregate()
    builder = builder.pipe(sleeper(0.001), concurrency=3, output_order="input")
    loader = hr.wrap(builder.add_sink(3).build(num_threads=4))
    items = consume(loader)
    assert sorted(items) == sorted([number for number in range(20) for _ in range(6)])
    found = operators(loader.report())
    assert (found["twice"].kind, found["twice"].items) == ("generator", 40)
    assert found["twice"].service.p50_s > 0.0009
    assert (found["fetch"].kind, found["fetch"].workers, found["fetch"].items) == ("map", 4, 40)
    assert found["fetch"].service.p50_s > 0.0035
    assert found["fetch"].cpu_s is None
    assert found["thrice"].items == 120
    assert found["decode"].items == 120
    parameters = {each.name: each for each in loader.report().profile.model.parameters}
    assert parameters["decode.output_order"].value == "input"
    assert parameters["fetch.concurrency"].value == 4


def test_items_that_fail_or_are_skipped() -> None:
    def picky(item: int) -> int | None:
        if item % 4 == 0:
            raise ValueError(item)
        return item if item % 4 == 1 else None

    builder = spdl.PipelineBuilder().add_source(Numbers(40)).pipe(picky)
    loader = hr.wrap(builder.add_sink(3).build(num_threads=1))
    assert consume(loader) == list(range(1, 40, 4))
    picky_operator = operators(loader.report())["picky"]
    assert picky_operator.failures == 10
    assert loader.report().profile.queues[1].puts == 10


def test_several_epochs_of_a_continuous_source() -> None:
    builder = spdl.PipelineBuilder().add_source(Numbers(12), continuous=True).pipe(sleeper(0.001))
    loader = hr.wrap(builder.add_sink(3).build(num_threads=1))
    with loader.auto_stop():
        for _ in range(3):
            assert list(loader) == list(range(12))
    profile = loader.report().profile
    assert (profile.epochs, profile.sink.steps) == (3, 36)


def double(item: int) -> int:
    time.sleep(0.004)
    return 2 * item


def test_a_process_pool_is_recorded_where_it_works() -> None:
    with ProcessPoolExecutor(1) as pool:
        builder = spdl.PipelineBuilder().add_source(Numbers(30)).pipe(double, executor=pool)
        loader = hr.wrap(builder.add_sink(3).build(num_threads=1))
        assert consume(loader) == [2 * number for number in range(30)]
        found = operators(loader.report())["double"]
    assert found.executor == "process"
    assert found.service.p50_s > 0.0035


def test_an_aggregator_of_the_users_own() -> None:
    from spdl.pipeline.defs import Aggregator

    class Pairs(Aggregator):  # type: ignore[misc]
        def __init__(self) -> None:
            self.held: list[int] = []

        def accumulate(self, item: int) -> list[int] | None:
            time.sleep(0.002)
            self.held.append(item)
            return self.flush() if len(self.held) == 2 else None

        def flush(self) -> list[int] | None:
            held, self.held = self.held, []
            return held or None

    builder = spdl.PipelineBuilder().add_source(Numbers(30)).aggregate(Pairs())
    loader = hr.wrap(builder.add_sink(3).build(num_threads=1))
    assert consume(loader) == [[number, number + 1] for number in range(0, 30, 2)]
    pairs = operators(loader.report())["Pairs"]
    assert pairs.kind == "batch"
    assert pairs.service.p50_s > 0.0015


def test_a_pipeline_that_runs_already(caplog: pytest.LogCaptureFixture) -> None:
    pipeline = four_stages(decode=0.002)
    with pipeline.auto_stop():
        loader = hr.wrap(pipeline)
        assert sum(len(batch) for batch in loader) == 160
    found = operators(loader.report())
    assert found["Numbers"].busy_s is None
    assert found["decode"].service.p50_s > 0.0015
    assert "before it starts" in caplog.text


def test_the_training_loop_leaves_early() -> None:
    loader = hr.wrap(four_stages())
    with loader.auto_stop():
        for number, _ in enumerate(loader):
            if number == 9:
                break
    assert loader.report().profile.sink.steps == 10


def test_probes_can_be_taken_out_again() -> None:
    pipeline = four_stages()
    loader: Any = hr.wrap(pipeline)
    queue = pipeline._impl._output_queue._async_queue
    assert "_put" in queue.__dict__
    loader._headrace.attachment.detach()
    assert not {"_put", "_get", "put", "get"} & set(queue.__dict__)
    assert len(consume(loader)) == 40


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert_seen_from_outside(monkeypatch, caplog, probes, four_stages, "_cells_of")


SCRIPT = """
import time
from spdl.pipeline import PipelineBuilder

def decode(item):
    time.sleep(0.004)
    return item

def main():
    for epoch in range(2):
        pipeline = (
            PipelineBuilder().add_source(range(60)).pipe(decode).add_sink(3).build(num_threads=2)
        )
        with pipeline.auto_stop():
            print(sum(pipeline))

main()
"""


def test_headrace_run_needs_no_change(tmp_path: Path) -> None:
    printed, report = run_script(tmp_path, SCRIPT)
    assert printed.startswith("1770\n1770\n")
    assert report.profile.loader == "Pipeline at train.py:12"
    assert (report.profile.epochs, report.profile.sink.steps) == (2, 120)
    assert operators(report)["decode"].items == 120


def pipeline_elsewhere() -> Any:
    config = spdl.PipelineBuilder().add_source(range(20)).pipe(double).add_sink(3).get_config()
    return spdl.run_pipeline_in_subprocess(config, num_threads=1)


def test_a_pipeline_in_a_process_of_its_own_is_seen_from_outside(caplog: pytest.LogCaptureFixture) -> None:
    loader = hr.wrap(pipeline_elsewhere())
    assert sorted(loader) == [2 * number for number in range(20)]
    assert "operator detail unavailable" in caplog.text
    profile = loader.report().profile
    assert profile.sink.steps == 20
    assert profile.operators[0].name == "subprocess pipeline"


def test_pipelines_that_are_merged() -> None:
    from spdl.pipeline import build_pipeline
    from spdl.pipeline.defs import Merge, Pipe, PipelineConfig, SinkConfig, SourceConfig

    def part(numbers: Any) -> Any:
        return PipelineConfig(SourceConfig(numbers), [Pipe(sleeper(0.001))], SinkConfig(1))

    config = PipelineConfig(Merge([part(Numbers(10)), part(range(10))]), [Pipe(double)], SinkConfig(2))
    loader = hr.wrap(build_pipeline(config, num_threads=3))
    assert sorted(consume(loader)) == sorted(2 * number for number in range(10) for _ in range(2))
    profile = loader.report().profile
    names = [op.name for op in profile.operators]
    assert names == ["Numbers", "decode", "range", "decode#2", "merge", "double", "add_sink"]
    into_merge = [queue.from_operators for queue in profile.queues if queue.to_operators == [4]]
    assert into_merge == [[1], [3]]
    assert [op.items for op in profile.operators[:4]] == [10, 10, 10, 10]


def test_a_sink_queue_of_threads() -> None:
    builder = spdl.PipelineBuilder().add_source(Numbers(30)).pipe(sleeper(0)).add_sink(2)
    loader = hr.wrap(builder.build(num_threads=4, use_thread_output_queue=True))
    assert consume(loader, 0.003) == list(range(30))
    last = loader.report().profile.queues[-1]
    assert (last.capacity, last.gets) == (2, 30)
    assert last.full_share > 0.5


def test_work_that_needs_the_interpreter_lock(stored: StoredReports) -> None:
    def decode(item: int) -> int:
        until = time.thread_time() + 0.003
        while time.thread_time() < until:
            sum(range(50))
        return item

    builder = spdl.PipelineBuilder().add_source(Numbers(320)).pipe(decode, concurrency=4).aggregate(8)
    pipeline = builder.add_sink(3).build(num_threads=4)
    diagnosis = stored(lambda: played(pipeline, 0.002), process_cpu_cores=1.0).diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("decode", "gil_contention")
    advice = diagnosis.advice[0]
    assert (advice.parameter, advice.from_, advice.to) == ("decode.executor", "thread", "process")
    assert "ProcessPoolExecutor" in advice.text
