"""The experiment of the verdict benchmark: what is drawn, what counts as truth, and how it is scored."""

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "verdicts"))

from experiment.plan import LOADER, NATIVE, QUEUES, Part, Plan, drawn
from experiment.score import Score, in_words, print_scores
from experiment.store import judged, keep
from experiment.trials import Trials

from stored_reports import quiet

NAMES = ["Inflate", "Match", "Fetch", "Tokenize", "ReadFile"]


def plan(shape: str = LOADER) -> Plan:
    parts = [Part("Inflate", 0.001), Part("Match", 0.003), Part("Fetch", 0.0005)]
    return Plan(7, shape, parts, batch=4, sink="sleep", sink_s=0.005, elements=64)


def score(
    plain_s: float = 0.020,
    ceiling_s: float = 0.005,
    without_s: dict[str, float] | None = None,
    advised_s: float | None = None,
    foreign: float = 0.0,
    **said: Any,
) -> Score:
    gate = {"rule": "gate", "figures": {"most_speedup": 4.0}}
    diagnosis = {"kind": "input_bound", "operator": "Match", "cause": "too_few_workers", "confidence": 0.9}
    report = {
        "diagnosis": {**diagnosis, "share_of_step": 0.7, "advice": [], "evidence": [gate], **said},
        "profile": {"sink": {"step_s": 0.0204}},
    }
    what_if = {"2": {"step_s": 0.0105, "low": 0.009, "high": 0.0102}, "3": {"step_s": None, "low": None}}
    without = without_s or {"Inflate": 0.016, "Match": 0.008, "Fetch": 0.019}
    return Score.of(
        Trials(
            plan().to_dict(), report, what_if, plain_s, ceiling_s, without, {"2": 0.010, "3": 0.006},
            "num_workers 1->2", advised_s, 0.0105, 0.01, foreign,
        )
    )  # fmt: skip


def test_the_same_seed_draws_the_same() -> None:
    for shape in (LOADER, NATIVE, QUEUES):
        assert drawn(5, shape, NAMES).to_dict() == drawn(5, shape, NAMES).to_dict()
        assert drawn(5, shape, NAMES).to_dict() != drawn(6, shape, NAMES).to_dict()
        assert Plan.from_dict(drawn(5, shape, NAMES).to_dict()) == drawn(5, shape, NAMES)


def test_the_main_parameter() -> None:
    assert plan(LOADER).main == "num_workers"
    assert plan(NATIVE).main == "Match.workers"


def test_advice_is_applied_where_it_can_be() -> None:
    more = plan(LOADER).with_value("num_workers", 3)
    assert more is not None
    assert more.workers == 3
    assert plan(LOADER).with_value("Match.workers", 3) is None
    assert plan(LOADER).with_value("sharing_strategy", "file_system") is None
    longer = plan(QUEUES).with_value("Match_out.capacity", 9)
    assert longer is not None
    assert longer.parts[1].capacity == 9
    assert plan(NATIVE).with_value("num_workers", 2) is None
    wider = plan(NATIVE).with_value("Fetch.workers", 2)
    assert wider is not None
    assert [part.workers for part in wider.parts] == [1, 1, 2]


@pytest.mark.parametrize(
    ("ceiling_s", "kind"), [(0.005, "input_bound"), (0.0185, ""), (0.0195, "not_input_bound")]
)
def test_kind_by_the_ceiling(ceiling_s: float, kind: str) -> None:
    one = score(ceiling_s=ceiling_s)
    assert one.kind == kind
    assert one.kind_right == (kind == "input_bound" if kind else None)


def test_operators_within_reach_of_the_best_gain() -> None:
    assert score().operators == ["Match"]
    near = score(without_s={"Inflate": 0.011, "Match": 0.008, "Fetch": 0.019})
    assert near.operators == ["Match", "Inflate"]
    assert score(without_s={"Inflate": 0.0195, "Match": 0.0198, "Fetch": 0.02}).operators == []


def test_operator_is_scored_only_where_the_kind_is_right() -> None:
    assert score().operator_right is True
    assert score(operator="Fetch").operator_right is False
    assert score(kind="not_input_bound", operator=None).operator_right is None


def test_predictions_and_their_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    one = score()
    assert one.predictions == [("2", 0.0105, 0.009, 0.0102, 0.010)]
    assert "2:+5%" in in_words(one)
    assert print_scores([one], 0)
    assert "p90 5.0 %" in capsys.readouterr().out


def test_how_well_runs_repeat_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    one = score()
    one.trials.repeats_s = [[0.020, 0.021, 0.024], [0.010, 0.010, 0.0105]]
    assert one.repeated == [True, False, True, True]
    print_scores([one], 0)
    assert "repeats the one before within 10 %: 3/4" in capsys.readouterr().out


def test_advice_that_is_slower() -> None:
    assert score().advice_harmful is None
    assert score(advised_s=0.0205).advice_harmful is False
    assert score(advised_s=0.022).advice_harmful is True


def test_disturbed_draws_are_not_scored(capsys: pytest.CaptureFixture[str]) -> None:
    assert not print_scores([score(foreign=0.2, operator="Fetch")], 2)
    assert "0 draws scored, 3 left out because others took the CPU" in capsys.readouterr().out


def test_a_kept_draw_is_judged_anew(tmp_path: Path) -> None:
    pipeline = hr.source(range(80)).map(lambda item: time.sleep(0.002) or item, name="Match").batch(4)
    loader = hr.wrap(pipeline, run=tmp_path / "run")
    for _ in loader:
        pass
    drawn_one = score()
    drawn_one.trials.plan = plan(NATIVE).to_dict()
    drawn_one.trials.report = quiet(json.loads(loader.report().to_json()))
    path = keep(drawn_one.trials, tmp_path / "draws", {"cores": 2})
    assert path == tmp_path / "draws" / "test" / "native_7.json.gz"
    assert "diagnosis" not in json.loads(gzip.decompress(path.read_bytes()))["report"]
    again = judged(path)
    assert again.plain_s == drawn_one.trials.plain_s
    said = [trials.report["diagnosis"] for trials in (drawn_one.trials, again)]
    assert said[0]["kind"] == said[1]["kind"] == "input_bound"
    assert said[0]["operator"] == said[1]["operator"] == "Match"
    assert set(again.what_if) == {"2", "3"}
    assert 0 < again.what_if["2"]["step_s"] < again.report["profile"]["sink"]["step_s"]
