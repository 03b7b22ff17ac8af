"""A line or a loader with the first advice made true."""

from __future__ import annotations

import copy
from typing import Any

from line import Line, Stage
from loader import Loader


def applied(drawn: Line | Loader, advice: list[dict[str, Any]]) -> tuple[Line | Loader, str] | None:
    """What was changed, also in words; None where the first advice is no number, or predicts none."""
    if not advice or advice[0]["predicted_step_s"] is None:
        return None
    return _to_line(drawn, advice) if isinstance(drawn, Line) else _to_loader(drawn, advice[0])


_OF_LOADERS = {"num_workers", "prefetch_factor", "in_order", "persistent_workers", "sharing_strategy"}


def _to_loader(loader: Loader, first: dict[str, Any]) -> tuple[Loader, str] | None:
    parameter = first["parameter"]
    if parameter not in _OF_LOADERS:
        return None
    changed = with_settings(loader, {parameter: first["to"]})
    return changed, f"{parameter} {first['from']}->{first['to']}"


def with_settings(loader: Loader, settings: dict[str, Any]) -> Loader:
    """A copy with these fields changed; a worker that is slower than its siblings stays the slow one."""
    changed = copy.deepcopy(loader)
    for name, value in settings.items():
        setattr(changed, name, value)
    changed.worker_times = (
        (loader.worker_times + [1.0] * 64)[: changed.num_workers or 1] if loader.worker_times else []
    )
    return changed


def queue_name(line: Line, stage: Stage) -> str:
    return stage.name if line.native else stage.queue or f"{stage.name}_out"


def _to_line(line: Line, advice: list[dict[str, Any]]) -> tuple[Line, str] | None:
    """Rows that share one prediction (capacities) together."""
    changed, words = copy.deepcopy(line), []
    named = [row for row in advice if row["parameter"]]
    first = advice[0]
    rows = [first]
    if (first["parameter"] or "").endswith(".capacity"):
        rows = [row for row in named if row["parameter"].endswith(".capacity")]
    for row in rows:
        for index, stage in enumerate(changed.stages):
            shared = {stage.name} | (
                {line.stages[index - 1].name} if index and line.stages[index - 1].with_next else set()
            )
            if row["parameter"] in {f"{name}.workers" for name in shared}:
                for each in changed.stages:
                    if each.name in shared:
                        each.workers, each.worker_times = int(row["to"]), []
            elif row["parameter"] == f"{queue_name(line, stage)}.capacity":
                stage.capacity = int(row["to"])
            else:
                continue
            words.append(f"{row['parameter']} {row['from']}->{row['to']}")
    if line.how == "generators" and first["parameter"] == "prefetch":
        changed.how, changed.window = "background", int(first["to"])
        words.append("prefetch 0->2")
    changed.prefilled = False
    changed.steps = max(60, int(line.steps * 0.8))
    return (changed, ", ".join(dict.fromkeys(words))) if words else None
