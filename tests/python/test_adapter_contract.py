"""A loader that only its adapter knows: its model is all that report and advice need."""

import queue
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace import loaders as adapters
from headrace.loaders.kit.base import Adapter, Attachment
from headrace.loaders.kit.graph import Edge, Graph, Loader, Operator, Stage
from headrace.loaders.kit.probes import follow_levels, time_function
from headrace.results.loader_model import LoaderModel
from virtual import sleep

pytest_plugins = ["virtual"]
pytestmark = pytest.mark.usefixtures("t", "run")

PLACES_PER_STAGE = 1000


class Feeder:
    """Some framework's loader, here without workers: it reads in the loop."""

    def __init__(self) -> None:
        self.read = self.bare_read

    def bare_read(self, number: int) -> int:
        sleep(0.005)
        return number

    def __iter__(self) -> Iterator[int]:
        for number in range(60):
            yield self.read(number)


class FeederAttachment(Attachment):
    def begin(self, handle: Any) -> None:
        op = _core.OperatorHandle("read", "source", 0, 0, "", handle.id, PLACES_PER_STAGE)
        feeder: Any = self.iterable
        feeder.read = _core.TimedCallable(feeder.bare_read, op)

    def describe(self) -> LoaderModel:
        graph = Graph()
        graph.stage("order", 1, "loop")
        graph.stage("readers", 0, "loop", gets_work="in_turn", widened_by="readers")
        graph.buffer(1, -1, 0, "ahead", is_window=True, per_worker=True)
        graph.parameter("readers", value=0, sets="workers", set_in="pass it to feeders.Config")
        graph.parameter("ahead", value=2, usual=2, sets="window", needs_workers=True)
        graph.parameter("codec", value="raw", usual="lz4")
        return graph.model("feeders")


class FeederAdapter(Adapter):
    libraries = ("feeders",)
    classes = (f"{__name__}:Feeder",)

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return FeederAttachment(obj)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(adapters, "ADAPTERS", [FeederAdapter(), *adapters.ADAPTERS])
    loader: Any = hr.wrap(Feeder())
    numbers = []
    for number in loader:
        numbers.append(number)
        sleep(0.004)
    assert numbers == list(range(60))
    return loader.report()


def test_the_model_is_part_of_the_profile(report: Any) -> None:
    model = report.profile.model
    assert model.framework == "feeders"
    assert [stage.operators for stage in model.stages] == [[], [0]]
    assert report.profile.operators[0].name == "read"
    assert report.profile.settings == {"framework": "feeders", "readers": "0", "ahead": "2", "codec": "raw"}


def test_what_is_not_usual_is_said(report: Any) -> None:
    assert "\nreaders=0, codec=raw\n" in str(report)


def test_advice_is_in_the_frameworks_own_parameters(report: Any) -> None:
    assert report.diagnosis.cause == "no_overlap"
    advice = report.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("readers", 0)
    assert advice.to >= 1
    assert "pass it to feeders.Config" in advice.text


def test_what_if_knows_its_parameters(report: Any) -> None:
    assert report.what_if(readers=2)["step_s"] < report.profile.sink.step_s
    with pytest.raises(hr.UsageError, match="ahead needs workers: set readers as well"):
        report.what_if(ahead=4)
    with pytest.raises(hr.UsageError, match=r"there are: readers, ahead, read\.speedup"):
        report.what_if(num_workers=4)


def test_an_adapter_that_fails_leaves_the_loop_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: Any) -> LoaderModel:
        raise LookupError("another version")

    monkeypatch.setattr(adapters, "ADAPTERS", [FeederAdapter(), *adapters.ADAPTERS])
    monkeypatch.setattr(FeederAttachment, "describe", fail)
    loader: Any = hr.wrap(Feeder())
    assert list(loader) == list(range(60))
    assert "another version" in caplog.text
    assert loader.report().profile.sink.steps == 60


BELTS = """
import queue, threading

class Belt:
    threads, room, decode = 1, 3, abs

    def __init__(self):
        self.decoded = queue.Queue(self.room)

    def __iter__(self):
        fill = lambda: [self.decoded.put(each) for each in (*map(self.decode, range(40)), None)]
        threading.Thread(target=fill).start()
        yield from iter(self.decoded.get, None)
"""
SCRIPT = """
import belts, headrace as hr
loader = hr.wrap(belts.Belt())
assert list(loader) == list(range(40))
profile = loader.report().profile
followed = profile.queues[0]
print(profile.operators[0].items, followed.puts, followed.capacity, profile.settings["room"])
"""


def test_another_package_has_an_entry_point(execute: Any, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/loaders.md").read_text()
    example = page.split("## A loader of your own library")[1].split("```python\n")[1]
    (tmp_path / "belts.py").write_text(BELTS)
    (tmp_path / "headrace_belts.py").write_text(example.split("```")[0])
    entry = tmp_path / "headrace_belts-1.0.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: headrace-belts\nVersion: 1.0\n")
    (entry / "entry_points.txt").write_text("[headrace.loaders]\nbelts = headrace_belts\n")
    assert execute(SCRIPT, PYTHONPATH=str(tmp_path)).out == "40 40 3 3\n"


# --- a loader of stages and queues ---


class Belt:
    """Some framework's loader: one thread reads, others decode, queues of its own between them."""

    def __init__(self, decoders: int) -> None:
        self.decoders = decoders
        self.read = self.bare_read
        self.decode = self.bare_decode
        self.raw: Any = queue.Queue(2)
        self.decoded: Any = queue.Queue(3)
        self.threads: list[threading.Thread] = []

    def bare_read(self, number: int) -> int:
        return number

    def bare_decode(self, number: int) -> int:
        sleep(0.01)
        return number

    def _reads(self) -> None:
        for number in range(80):
            self.raw.put(self.read(number))
        self.raw.put(None)

    def _decodes(self) -> None:
        while (number := self.raw.get()) is not None:
            self.decoded.put(self.decode(number))
        self.raw.put(None)

    def __iter__(self) -> Iterator[int]:
        self.threads = [
            threading.Thread(target=each) for each in (self._reads, *[self._decodes] * self.decoders)
        ]
        for thread in self.threads:
            thread.start()
        for _ in range(80):
            yield self.decoded.get()
        for thread in self.threads:
            thread.join()


def is_end(item: Any) -> bool:
    return item is None


class Belts(Loader):
    libraries = ("belts",)
    classes = (f"{__name__}:Belt",)

    def read(self, belt: Belt) -> Graph:
        graph, loop = Graph(), Stage()
        read = Stage([Operator("read", "source", partial(time_function, belt, "read"))])
        decode = Stage([Operator("decode", "map", partial(time_function, belt, "decode"))])
        graph.add(read)
        graph.add(decode, belt.decoders, ordered=False, widened_by="decode.hands")
        graph.add(Stage([Operator("ship", "prefetch")]), runs_in="async")  # of which nothing is timed
        where: Any = {"usual": 1, "min": 1, "sets": "workers", "stage": 1, "set_in": "pass hands to Belt"}
        graph.parameter("decode.hands", belt, "decoders", **where)
        graph.parameter("tray", value=3, usual=3, min=1, sets="capacity", stage=1)
        graph.edges += [
            Edge("raw", read, decode, 2, partial(follow_levels, belt.raw, is_end)),
            Edge("decoded", decode, loop, 3, partial(follow_levels, belt.decoded, is_end), "tray"),
        ]
        graph.ready = lambda: not belt.decoded.empty()
        return graph


@pytest.fixture
def belt(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(adapters, "ADAPTERS", [Belts(), *adapters.ADAPTERS])
    loader: Any = hr.wrap(Belt(decoders=2))
    numbers = []
    for number in loader:
        numbers.append(number)
        sleep(0.001)
    assert sorted(numbers) == list(range(80))
    return loader.report()


def test_queues_connect_the_stages_that_they_name(belt: Any) -> None:
    profile = belt.profile
    assert [op.name for op in profile.operators] == ["read", "decode", "ship"]
    assert [op.workers for op in profile.operators] == [1, 2, 1]
    assert [stage.operators for stage in profile.model.stages] == [[0], [1], [2]]
    ends = [(q.name, q.from_operators, q.to_operators, q.to_sink, q.capacity) for q in profile.queues]
    assert ends == [("raw", [0], [1], False, 2), ("decoded", [1], [], True, 3)]
    assert [(q.from_, q.to) for q in profile.queues] == [("read", "decode"), ("decode", "sink")]
    # The readers are ahead, the loop takes whatever is decoded.
    assert profile.queues[0].mean > 1
    assert profile.queues[1].mean < 1
    assert profile.queues[0].gets == profile.queues[1].puts == 80


def test_a_stages_time_is_that_of_its_calls(belt: Any) -> None:
    read, decode, ship = belt.profile.operators
    assert decode.service.mean_s == pytest.approx(0.01)
    assert (decode.states.busy, read.states.busy) == (pytest.approx(1, abs=0.05), 0)
    assert (ship.items, ship.busy_s) == (None, None)
    assert belt.profile.stall_ledger[0].operator == "decode"


def test_a_stage_that_limits_is_widened_by_its_own_parameter(belt: Any) -> None:
    assert (belt.diagnosis.operator, belt.diagnosis.cause) == ("decode", "too_few_workers")
    advice = belt.diagnosis.advice[0]
    assert (advice.parameter, advice.from_) == ("decode.hands", 2)
    assert advice.text.endswith("; pass hands to Belt")


def test_only_what_the_framework_lets_be_set_can_be_tried(belt: Any) -> None:
    assert belt.what_if(**{"decode.hands": 4})["step_s"] < 0.8 * belt.profile.sink.step_s
    with pytest.raises(hr.UsageError, match=r"there are: decode\.hands, tray, free_threaded"):
        belt.what_if(**{"read.workers": 2})
