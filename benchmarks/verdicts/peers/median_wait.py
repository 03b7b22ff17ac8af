"""Input-bound where the median wait for a batch is 5 % of the step or more: rare stalls do not count."""

from __future__ import annotations

from typing import Any

from peers.answer import Answer

NAME = "median wait"
NOTIONS = ("kind",)
GATE = 0.05


def judge(profile: dict[str, Any]) -> Answer:
    sink = profile["sink"]
    wait_s = float(sink["getnext_wait"]["p50_s"])
    step_s = wait_s + float(sink["compute_s"])
    bound = step_s > 0 and wait_s >= GATE * step_s
    return Answer("input_bound" if bound else "not_input_bound", words=f"median wait {1e3 * wait_s:.2f} ms")
