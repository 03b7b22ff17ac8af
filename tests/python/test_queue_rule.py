"""What the levels of the queues name on their own, beside the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr

CORPUS = Path(__file__).parents[1] / "verdicts" / "corpus"


def diagnosis_of(name: str) -> Any:
    profile = json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))["profile"]
    return hr.Report.from_profile_json(json.dumps(profile)).diagnosis


def test_an_operator_between_a_high_and_a_low_queue_is_named() -> None:
    diagnosis = diagnosis_of("slow_native_stage_100")
    rule = diagnosis.queue_rule
    assert rule.operator == diagnosis.operator
    assert rule.agrees
    assert rule.left > 0.5 > rule.right


def test_it_is_on_every_profile_with_queues_and_says_where_it_differs() -> None:
    differs = 0
    for path in sorted(CORPUS.glob("*.json")):
        diagnosis = diagnosis_of(path.stem)
        rule = diagnosis.queue_rule
        profile = json.loads(path.read_text(encoding="utf-8"))["profile"]
        assert (rule is not None) == any(queue["to"] == "sink" for queue in profile["queues"]), path.stem
        if rule is None:
            continue
        assert rule.says
        for level in (rule.left, rule.right):
            assert level is None or 0 <= level <= 1
        if rule.operator and diagnosis.operator and rule.operator == diagnosis.operator:
            assert rule.agrees, path.stem
        if not rule.agrees:
            differs += 1
            why = rule.says.partition("; ")[2]
            assert why, path.stem
            shown = [each.says for each in diagnosis.evidence if each.rule == "queues"]
            assert not shown or why in shown[0] or "still hides it" in shown[0], path.stem
    assert differs


def test_it_is_in_the_saved_report_and_comes_back(tmp_path: Path) -> None:
    path = CORPUS / "slow_native_stage_100.json"
    profile = json.loads(path.read_text(encoding="utf-8"))["profile"]
    report = hr.Report.from_profile_json(json.dumps(profile))
    written = report.to_dict()["diagnosis"]["queue_rule"]
    assert set(written) == {"operator", "left", "right", "agrees", "says"}
    report.save(tmp_path / "report.json")
    assert hr.Report.load(tmp_path / "report.json").diagnosis.queue_rule == report.diagnosis.queue_rule


def said_of(profile: dict[str, Any]) -> str:
    report = hr.Report.from_profile_json(json.dumps(profile))
    assert report.diagnosis.cause == "variance"
    return " ".join(report.to_text().split())


def test_one_that_is_slower_than_the_step_is_not_called_fast_enough() -> None:
    profile = json.loads((CORPUS / "varying_producer_500.json").read_text())["profile"]
    text = said_of(profile)
    assert "unzip is fast enough on average" in text
    assert "No operator is slower than the training step (unzip 21.2 ms, step 21.8 ms)" in text
    for name in ("compute_s", "quiet_compute_s"):
        profile["sink"][name] *= 0.94
    text = said_of(profile)
    assert "unzip varies more than the buffers bridge" in text
    assert "fast enough" not in text
    assert "No operator is slower" not in text
