"""Blames the operator that was busy for the longest total time, when the loop waits at all.

What a reader does with a table of operators sorted by time, and close to what input analysers do that sum
each operator's own time. The gate is the one of the TensorBoard profilers of TensorFlow and PyTorch: input
takes 5 % of the step or more.
"""

from __future__ import annotations

from typing import Any

from peers.answer import Answer

NAME = "largest busy time"
NOTIONS = ("kind", "operator")
GATE = 0.05


def judge(profile: dict[str, Any]) -> Answer:
    share = float(profile["sink"]["wait_share"])
    if share < GATE:
        return Answer("not_input_bound", "", words=f"waits {100 * share:.0f} %")
    busiest = max(profile["operators"], key=lambda op: float(op["busy_s"]), default=None)
    return Answer("input_bound", busiest["name"] if busiest else None, words=f"waits {100 * share:.0f} %")
