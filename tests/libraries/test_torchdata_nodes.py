"""torchdata.nodes: threads, queues and verdicts in torchdata's own words."""

import copy
import gc
import pickle
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.loaders import torchdata_nodes
from recorded_loops import (
    Numbers,
    assert_run_needs_no_change,
    assert_seen_from_outside,
    burn,
    consume,
    operators,
    outcome,
    played,
    sleeper,
)
from stored_reports import StoredReports

nodes = pytest.importorskip("torchdata.nodes", reason="torchdata is not installed")

pytestmark = pytest.mark.usefixtures("run")


def gather(items: list[Any]) -> list[Any]:
    return items


def loader_of(
    source: Any = None,
    decode: Any = None,
    collate: Any = gather,
    workers: int = 2,
    ahead: int = 3,
    **options: Any,
) -> Any:
    node = nodes.IterableWrapper(source if source is not None else Numbers())
    node = nodes.ParallelMapper(node, decode or sleeper(0), num_workers=workers, **options)
    node = nodes.Mapper(nodes.Batcher(node, 8), collate)
    return nodes.Loader(nodes.Prefetcher(node, ahead) if ahead else node)


def test_every_node_and_queue_is_shown() -> None:
    loader = hr.wrap(loader_of(decode=sleeper(0.002)))
    batches = consume(loader, 0.001)
    assert [number for batch in batches for number in batch] == list(range(320))
    profile = loader.report().profile
    shown = [(op.name, op.kind, op.workers, op.items) for op in profile.operators]
    assert shown == [
        ("Numbers", "source", 1, 320),
        ("decode", "map", 2, 320),
        ("Batcher(8)", "batch", 1, 40),
        ("gather", "map", 1, 40),
    ]
    ends = [(q.name, q.from_operators, q.to_operators, q.to_sink, q.capacity) for q in profile.queues]
    assert ends == [
        ("ParallelMapper input", [0], [1], False, 2),
        ("ParallelMapper", [1], [2], False, 4),
        ("Prefetcher", [3], [], True, 3),
    ]
    found = operators(loader.report())
    assert found["decode"].service.p50_s > 0.0019
    assert all(op.failures == 0 for op in profile.operators)
    assert profile.settings["framework"] == "torchdata"
    assert "decode.num_workers=2" in str(loader.report())


# --- the six cases ---


def test_a_slow_source(stored: StoredReports) -> None:
    diagnosis = stored(lambda: played(loader_of(Numbers(320, 0.003)), 0.001)).diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("Numbers", "serial_operator")


def test_one_worker(stored: StoredReports) -> None:
    report = stored(lambda: played(loader_of(decode=sleeper(0.003), workers=1), 0.001))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "too_few_workers")
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("decode.num_workers", 1)
    assert "; set it in ParallelMapper(decode)" in advice.text
    assert report.what_if(**{"decode.num_workers": 4})["step_s"] < 0.5 * report.profile.sink.step_s
    found = operators(report)
    assert found["decode"].states.busy > 0.8
    assert found["Batcher(8)"].states.busy < 0.2  # what it waits for is not its time
    assert found["Numbers"].states.blocked_out > 0.5


def test_a_slow_collate(stored: StoredReports) -> None:
    def stack(items: list[Any]) -> list[Any]:
        time.sleep(0.02)
        return items

    report = stored(lambda: played(loader_of(collate=stack), 0.001))
    assert (report.diagnosis.kind, report.diagnosis.operator) == ("input_bound", "stack")
    assert report.diagnosis.advice[0].parameter == "stack.num_workers"


def test_a_slow_training_step(stored: StoredReports) -> None:
    report = stored(lambda: played(loader_of(), 0.02))
    assert report.diagnosis.kind == "not_input_bound"
    assert report.diagnosis.advice == []
    assert report.profile.queues[-1].full_share > 0.5


def test_work_that_needs_the_interpreter_lock(stored: StoredReports) -> None:
    def decode(item: int) -> int:
        burn(0.002)
        return item

    report = stored(lambda: played(loader_of(decode=decode, workers=4), 0.002), process_cpu_cores=1.0)
    diagnosis = report.diagnosis
    assert (diagnosis.operator, diagnosis.cause) == ("decode", "gil_contention")
    advice = diagnosis.advice[0]
    assert (advice.parameter, advice.from_, advice.to) == ("decode.method", "thread", "process")


def work(item: int) -> int:
    burn(0.004)
    return item


def test_workers_that_use_all_cores(stored: StoredReports) -> None:
    options = {"method": "process", "multiprocessing_context": "fork"}
    report = stored(lambda: played(loader_of(Numbers(160), decode=work, **options), 0.001))
    assert report.profile.sink.steps == 20
    found = operators(report)["work"]
    assert found.executor == "process"
    assert found.service.p50_s > 0.0035
    assert found.cpu_s > 0.5 * found.busy_s
    assert report.diagnosis.operator == "work"


def test_everything_in_the_loop(stored: StoredReports) -> None:
    node = nodes.Batcher(nodes.Mapper(nodes.IterableWrapper(Numbers(160)), sleeper(0.002)), 8)
    report = stored(lambda: played(nodes.Loader(node), 0.005))
    assert (report.diagnosis.operator, report.diagnosis.cause) == ("decode", "no_overlap")
    assert operators(report)["decode"].in_sink


# --- nothing changes ---


def fails(item: int) -> int:
    if item == 77:
        raise ValueError("item 77")
    return item


CONFIGURATIONS: dict[str, Callable[[], Any]] = {
    "workers": loader_of,
    "in the loop": lambda: nodes.Loader(nodes.Batcher(nodes.IterableWrapper(Numbers()), 3, drop_last=False)),
    "prebatch": lambda: loader_of(prebatch=5),
    "error in a map": lambda: loader_of(decode=fails),
    "error in the loop": lambda: nodes.Loader(nodes.Mapper(nodes.IterableWrapper(Numbers(90)), fails)),
    "processes": lambda: loader_of(decode=abs, method="process", multiprocessing_context="fork"),
    "mixed": lambda: nodes.Loader(
        nodes.MultiNodeWeightedSampler(
            {
                "a": nodes.IterableWrapper(Numbers(40)),
                "b": nodes.Prefetcher(nodes.IterableWrapper(range(100, 140)), 2),
            },
            {"a": 0.3, "b": 0.7},
            seed=3,
        )
    ),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_batches_and_errors_are_those_of_a_bare_loader(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    for _ in range(2):
        assert outcome(lambda: iter(recorded)) == outcome(lambda: iter(bare))
    # Read again: a run that raised ends the epoch, as it does bare.
    assert recorded.report().profile.operators


@pytest.mark.parametrize("name", ["workers", "in the loop", "prebatch", "mixed"])
def test_the_state_is_that_of_a_bare_loader(name: str) -> None:
    make = CONFIGURATIONS[name]
    bare, recorded = make(), hr.wrap(make())
    bare_items, items = iter(bare), iter(recorded)
    assert [next(items) for _ in range(7)] == [next(bare_items) for _ in range(7)]
    state = recorded.state_dict()
    assert repr(state) == repr(bare.state_dict())  # it may hold tensors
    resumed, resumed_bare = hr.wrap(make()), make()
    resumed.load_state_dict(copy.deepcopy(state))
    resumed_bare.load_state_dict(copy.deepcopy(state))
    rest = list(bare_items)
    assert list(items) == rest
    assert list(resumed) == rest
    assert list(resumed_bare) == rest


def test_the_training_loop_leaves_early() -> None:
    loader = hr.wrap(loader_of())
    assert len(consume(loader, limit=5)) == 5
    assert len(consume(loader)) == 40
    assert loader.report().profile.sink.steps == 45


def test_two_loaders_at_once() -> None:
    first, second = hr.wrap(loader_of(Numbers(80))), hr.wrap(loader_of(Numbers(160)))
    pairs = list(zip(first, second, strict=False))
    assert [one for one, _ in pairs] == [two for _, two in pairs]
    assert operators(first.report())["Numbers"].items == 80
    assert operators(second.report())["Numbers"].items > 80


def test_a_recorded_loader_can_be_copied() -> None:
    node = nodes.Prefetcher(nodes.Batcher(nodes.IterableWrapper(Numbers(80)), 8), 2)
    loader = nodes.Loader(node)
    recorded = hr.wrap(loader)
    copied = copy.deepcopy(loader)
    pickled = pickle.loads(pickle.dumps(loader))
    items = list(recorded)
    assert list(copied) == items
    assert list(pickled) == items
    assert operators(recorded.report())["Numbers"].items == 80


def test_a_loader_ends_when_nobody_has_it() -> None:
    # A Loader and its iterator have each other: torchdata leaves them to the garbage collector. Nodes end.
    node = loader_of().root
    recorded: Any = hr.wrap(node)
    next(iter(recorded))
    gone = [weakref.ref(node), weakref.ref(node._it), weakref.ref(node._it._q)]
    gc.disable()
    try:
        del node, recorded
        assert gone[0]() is None
        assert gone[1]() is None
    finally:
        gc.enable()


def test_probes_can_be_taken_out_again() -> None:
    loader = loader_of()
    recorded: Any = hr.wrap(loader)
    mapper = loader.root.source.source.source._it
    assert "next" in vars(loader.root.source.source)
    assert type(mapper.map_fn).__name__ == "TimedCallable"
    recorded._headrace.attachment.detach()
    assert "next" not in vars(loader.root.source.source)
    assert "reset" not in vars(mapper)
    assert mapper.map_fn.__name__ == "decode"
    assert len(consume(recorded)) == 40


def test_another_version_is_seen_from_outside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert_seen_from_outside(monkeypatch, caplog, torchdata_nodes, loader_of)


def test_headrace_run_needs_no_change(tmp_path: Path) -> None:
    mapper = "nodes.ParallelMapper(nodes.IterableWrapper(range(60)), decode, num_workers=1)"
    make = f"import torchdata.nodes as nodes\nloader = nodes.Loader({mapper})"
    assert_run_needs_no_change(tmp_path, make, "Loader at train.py:8")
