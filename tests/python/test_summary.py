"""The summary of a report: small, whole, and enough to pick the right change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.results.summary import MAX_BYTES, to_json

CORPUS = sorted((Path(__file__).parents[1] / "verdicts" / "corpus").glob("*.json"))

#: The change that is right for a labelled cause.
RIGHT = {
    "": "nothing",
    "startup": "nothing",
    "transient_stall": "nothing",
    "too_few_workers": "more workers",
    "no_overlap": "load beside the loop",
    "variance": "longer buffers",
    "slow_samples": "take the slow items off the path",
    "gil_contention": "processes",
    "serial_operator": "split the operator",
    "slow_worker": "repair the worker",
    "cpu_saturated": "less work on the cores",
    "handoff": "cheaper hand-off",
    "alternating": "several operators",
}


def picked(summary: dict[str, Any]) -> tuple[str, str]:
    """What to change, and which operator it is about: fixed rules that read the summary only."""
    verdict = summary["verdict"]
    about = verdict.get("operator", "")
    if verdict["kind"] not in ("input_bound", "intermittent"):
        return "nothing", ""
    if len({one["operator"] for one in summary["windows"] if one.get("operator")}) > 1 and not about:
        return "several operators", ""
    first = next((one for one in summary["advice"] if "parameter" in one), None)
    workers = {one["name"]: one["workers"] for one in summary["operators"]}
    if first is not None:
        parameter, old, new = first["parameter"].rpartition(".")[2], first["from"], first["to"]
        if parameter == "executor":
            return "processes", about
        if parameter in ("num_workers", "prefetch") and old == 0:
            return "load beside the loop", about
        if verdict.get("cause") != "handoff" and parameter in ("num_workers", "workers") and new > old:
            return "more workers", about
        if parameter == "in_order":
            return "take the slow items off the path", about
        if parameter in ("capacity", "prefetch_factor"):
            return "longer buffers", about
    # No parameter does it: what the cause means (docs/verdicts.md).
    by_cause = {
        "transient_stall": "nothing",
        "handoff": "cheaper hand-off",
        "cpu_saturated": "less work on the cores",
        "slow_worker": "repair the worker",
        "slow_samples": "take the slow items off the path",
        "serial_operator": "split the operator",
        "variance": "longer buffers",
        "too_few_workers": "more workers" if workers.get(about) else "",
    }
    return by_cause.get(verdict.get("cause", ""), ""), about


def summary_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of a labelled run, as it is read from the wire, and its label."""
    label = json.loads(path.read_text(encoding="utf-8"))
    report = hr.Report.from_profile_json(json.dumps(label["profile"]))
    text = to_json(report.to_summary())
    assert len(text.encode()) <= MAX_BYTES
    return json.loads(text), label


def test_the_right_change_is_picked_from_the_summary_alone() -> None:
    wrong = []
    for path in CORPUS:
        summary, label = summary_of(path)
        change, about = picked(summary)
        operator = label["operator"]
        same_operator = operator == "*" or about == operator or change == "nothing"
        if change != RIGHT[label["cause"]] or not same_operator:
            wrong.append((path.stem, change, about))
    assert len(CORPUS) >= 90
    assert len(wrong) <= len(CORPUS) / 20, wrong


def test_figures_are_those_of_the_report() -> None:
    label = json.loads((CORPUS[0].parent / "slow_sources_1200.json").read_text(encoding="utf-8"))
    report = hr.Report.from_profile_json(json.dumps(label["profile"]))
    summary = report.to_summary()
    sink, diagnosis = report.profile.sink, report.diagnosis
    assert summary["summary"] == 1
    assert summary["verdict"]["kind"] == diagnosis.kind
    assert summary["verdict"]["says"] == diagnosis.summary
    assert summary["step"]["step_s"] == pytest.approx(sink.step_s, rel=1e-3)
    assert summary["step"]["getnext_wait_s"] == pytest.approx(sink.getnext_wait.mean_s, rel=1e-3)
    assert summary["advice"][0]["to"] == diagnosis.advice[0].to
    assert summary["advice"][0]["predicted_step_s"] == pytest.approx(
        diagnosis.advice[0].predicted_step_s, rel=1e-3
    )
    demands = [one["demand_s"] for one in summary["operators"]]
    assert demands == sorted(demands, reverse=True)


@pytest.mark.parametrize("name", ["x" * 500, "ü\u202e" * 300, "\x01\x02" * 300, "\U0001f40c" * 300])
def test_it_stays_small_whatever_a_run_holds(name: str) -> None:
    label = json.loads((CORPUS[0].parent / "loader_slow_transform_400.json").read_text(encoding="utf-8"))
    profile = label["profile"]
    profile["loader"] = name
    first = profile["operators"][0]
    profile["operators"] = [{**first, "name": f"{at}{name}"} for at in range(200)]
    profile["settings"] = {f"{name}{at}": name for at in range(200)}
    report = hr.Report.from_profile_json(json.dumps(profile))
    summary = report.to_summary()
    assert len(to_json(summary).encode()) <= MAX_BYTES
    assert summary["verdict"]["kind"]
    shown = len(summary["operators"])
    assert shown + summary["left_out"]["operators"] == 200


def test_the_command_prints_one_line(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with hr.session(run=run):
        for _ in hr.wrap(range(50), name="train"):
            pass
    command = [sys.executable, "-m", "headrace", "report", str(run)]
    done = subprocess.run([*command, "--format", "json", "--summary"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    said = json.loads(line)
    assert said["loader"] == "train"
    assert said["step"]["steps"] == 50
    wrong = subprocess.run([*command, "--summary"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "--format json" in wrong.stderr
