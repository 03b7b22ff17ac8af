"""SPDL's published way to find the bottleneck, as a rule on queue occupancies. Our reading of their prose.

Their guide (facebookresearch.github.io/spdl, "Optimization Guide") defines a queue's occupancy rate as the
share of time in which it was not empty, says that a sink queue that is seldom empty means that data is ready,
and finds the bottleneck where occupancy goes from high to low: the stage whose input queue is full while its
output queue is empty. Made a rule: the sink's queue at 0.5 or more means no bottleneck; else the stage after
the last queue that is at 0.5 or more; where there is none, the source.

The occupancies are those of the recorded profile: the same queues, and exact, where SPDL's are of its own.
Where one thread or worker runs several operators, SPDL would show one stage: it is taken for its operator
with the largest demand. Of a DataLoader, the workers are the stage and the results they have ready are the
sink's queue; its reorder buffer is empty in a healthy loader too. Without a queue the rule cannot be asked.
Cause: the guide leaves it to the reader.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from peers.answer import Answer

NAME = "SPDL's rule"
NOTIONS = ("kind", "operator")
HIGH = 0.5


def judge(profile: dict[str, Any]) -> Answer:
    chain = queues_in_order(profile)
    if not chain:
        return Answer(unable="no queue was recorded")
    if not_empty(chain[-1]) >= HIGH:
        return Answer("not_input_bound", "", words=f"sink queue at {not_empty(chain[-1]):.2f}")
    stage = chain[0]["from"]
    for queue, behind in pairwise(chain):
        if not_empty(queue) >= HIGH:
            stage = behind["from"]
    operator = dearest_of_stage(profile, stage)
    return Answer("input_bound", operator, words=f"occupancy falls behind {operator}")


def not_empty(queue: dict[str, Any]) -> float:
    return 1 - float(queue["empty_share"])


def queues_in_order(profile: dict[str, Any]) -> list[dict[str, Any]]:
    """From the source to the sink, as the profile lists them; index queues, which nothing fills, left out."""
    handing_over = {op["name"] for op in profile["operators"] if op["kind"] == "handoff"}
    return [queue for queue in profile["queues"] if queue["from"] and queue["from"] not in handing_over]


def names_in(operators: str) -> list[str]:
    return [name.strip() for name in operators.split(",")]


def stage_of(profile: dict[str, Any], operator: str) -> list[str]:
    """The operators that share its threads."""
    segment = next((op["segment"] for op in profile["operators"] if op["name"] == operator), None)
    if segment is None or segment < 0:
        return [operator]
    return [op["name"] for op in profile["operators"] if op["segment"] == segment]


def dearest_of_stage(profile: dict[str, Any], stage: str) -> str:
    names = {mate for name in names_in(stage) for mate in stage_of(profile, name)}
    mates = [op for op in profile["operators"] if op["name"] in names]
    if not mates:
        return stage
    return str(max(mates, key=lambda op: float(op["demand_s"]))["name"])
