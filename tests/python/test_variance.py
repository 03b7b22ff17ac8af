"""What is said of an operator whose times vary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headrace as hr

CORPUS = Path(__file__).parents[1] / "verdicts" / "corpus"


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
        profile["sink"][name] *= 0.6
    text = said_of(profile)
    assert "unzip varies more than the buffers bridge" in text
    assert "fast enough" not in text
    assert "No operator is slower" not in text
