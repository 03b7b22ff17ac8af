"""Reports that were saved before a profile held the loader's model say what they said."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

CORPUS = Path(__file__).parent.parent / "verdicts" / "corpus"
LOADERS = [
    "loader_too_few_workers_100",
    "loader_in_loop_400",
    "loader_slow_stream_400",
    "loader_slow_sampler_400",
]


def recorded(name: str) -> Any:
    return json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))["profile"]


def as_it_was(profile: Any) -> Any:
    older = copy.deepcopy(profile)
    older.pop("model", None)
    for each in [*older.get("operators", []), *older.get("queues", [])]:
        for knob in each.get("knobs", []):
            knob.pop("sets", None)
    return older


def verdict(tmp_path: Path, profile: Any) -> Any:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"version": 1, "profile": profile}), encoding="utf-8")
    report = hr.Report.load(path)
    return json.loads(report.to_json())["diagnosis"], str(report)


@pytest.mark.parametrize("name", [*LOADERS, "executor_too_few_500", "near_tie_500"])
def test_an_older_report_gets_the_same_verdict(tmp_path: Path, name: str) -> None:
    profile = recorded(name)
    assert verdict(tmp_path, as_it_was(profile)) == verdict(tmp_path, profile)


def test_what_makes_no_sense_is_read_without_a_model(tmp_path: Path) -> None:
    for settings in ({"framework": "another"}, {}, {"framework": "torch", "num_workers": "-3"}):
        profile = as_it_was(recorded(LOADERS[0]))
        profile["settings"] = settings
        verdict(tmp_path, profile)


def beside_ranks(name: str, slow: int) -> Any:
    """The profile of rank 0, and three other ranks of which the slow one starves."""
    profile = recorded(name)
    profile["ranks"] = [
        {"rank": rank, "steps": 200, "step_s": 0.04, "compute_s": 0.039, "op": "Decode"}
        | {"starved_share": share, "wait_share": share, "demand_s": 0.04 if share else 0.002}
        for rank, share in ((1, 0.0), (2, 0.5 if slow == 2 else 0.0), (3, 0.0))
    ]
    return profile | {"slow_ranks": [slow]}


@pytest.mark.parametrize(("name", "slow"), [(LOADERS[0], 0), ("loader_healthy_400", 2)])
def test_slow_ranks_of_an_older_report_are_those_of_its_diagnosis(
    tmp_path: Path, name: str, slow: int
) -> None:
    profile = beside_ranks(name, slow)
    path = tmp_path / "report.json"

    def read(document: Any) -> Any:
        path.write_text(json.dumps(document), encoding="utf-8")
        return json.loads(hr.Report.load(path).to_json())

    saved = read({"version": 1, "profile": profile})
    diagnosis = saved["diagnosis"]
    named = [one["figures"]["rank"] for one in diagnosis["evidence"] if one["rule"] == "ranks"]
    assert (diagnosis["cause"] == "slow_rank", named) == (slow == 0, [slow] if slow else [])
    older = copy.deepcopy(saved)
    del older["profile"]["slow_ranks"]
    again = read(older)
    assert again["profile"]["slow_ranks"] == [slow]
    assert again["diagnosis"] == diagnosis
    for damaged in (None, [], {"cause": "none"}, {"cause": "none", "evidence": [{"rule": "ranks"}]}):
        assert read({**older, "diagnosis": damaged})["profile"]["slow_ranks"] == []
