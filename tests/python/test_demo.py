"""What the demo says about a prediction that missed because the machine was busy."""

import json
from typing import Any

import headrace as hr
from headrace.report import Advice
from headrace.show.demo.run import _disturbed


def report(step_s: float, others: float | None) -> hr.Report:
    profile: dict[str, Any] = {
        "loader": "demo",
        "elapsed_s": 100 * step_s,
        "sink": {"steps": 101, "step_s": step_s, "compute_s": step_s},
        "host": {"cores": 2, "foreign_cpu_share": others},
    }
    return hr.Report.from_profile_json(json.dumps(profile))


ADVICE = Advice(parameter="num_workers", from_=1, to=2, predicted_step_s=0.1, low=0.09, high=0.12)


def test_a_missed_prediction_names_the_busy_machine() -> None:
    lines = _disturbed(report(0.2, 0.3), report(0.3, 0.52), ADVICE)
    assert "30% of the cores in run 1 and 52% in run 2" in " ".join(lines)


def test_nothing_is_said_where_it_held_or_nobody_disturbed() -> None:
    assert not _disturbed(report(0.2, 0.3), report(0.11, 0.52), ADVICE)
    assert not _disturbed(report(0.2, 0.02), report(0.3, 0.0), ADVICE)
    assert not _disturbed(report(0.2, None), report(0.3, None), ADVICE)
