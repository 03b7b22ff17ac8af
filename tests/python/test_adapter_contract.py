"""A loader that only its adapter knows: its model is all that report and advice need."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core, adapters
from headrace._figures import LoaderBuffer, LoaderModel, LoaderParameter, LoaderStage
from headrace.adapters.base import Adapter, Attachment

pytestmark = pytest.mark.usefixtures("run")

PLACES_PER_STAGE = 1000


class Feeder:
    """Some framework's loader, here without workers: it reads in the loop."""

    def __init__(self) -> None:
        self.read = self.bare_read

    def bare_read(self, number: int) -> int:
        time.sleep(0.005)
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
        return LoaderModel(
            framework="feeders",
            stages=[
                LoaderStage(name="order"),
                LoaderStage(name="readers", workers=0, gets_work="in_turn", widened_by="readers"),
            ],
            buffers=[LoaderBuffer(from_=1, capacity=0, is_window=True, per_worker=True, set_by="ahead")],
            parameters=[
                LoaderParameter(name="readers", value=0, sets="workers", set_in="pass it to feeders.Config"),
                LoaderParameter(name="ahead", value=2, usual=2, sets="window", needs_workers=True),
                LoaderParameter(name="codec", value="raw", usual="lz4"),
            ],
        )


class FeederAdapter(Adapter):
    library = "feeders"

    def detect(self, obj: object) -> int:
        return 50 if isinstance(obj, Feeder) else 0

    def name(self, obj: object) -> str:
        return "Feeder"

    def attach(self, obj: Any, name: str | None = None) -> Attachment:
        return FeederAttachment(obj)


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(adapters, "ADAPTERS", [FeederAdapter(), *adapters.ADAPTERS])
    loader: Any = hr.wrap(Feeder())
    numbers = []
    for number in loader:
        numbers.append(number)
        time.sleep(0.004)
    assert numbers == list(range(60))
    document = json.loads(loader.report().to_json())
    # What others do on this machine meanwhile is not this test's matter.
    document["profile"]["host"].update(
        cores=8, foreign_cpu_share=0.0, foreign_contention_share=0.0, run_queue_wait_share=0.0
    )
    (tmp_path / "report.json").write_text(json.dumps(document), encoding="utf-8")
    return hr.Report.load(tmp_path / "report.json")


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
