"""Computing and collectives of the ranks of a parallel job: their time, and the links that they used.

hccl_raw_<rank>.csv                                                the cost of collectives
(ascend|gpu)_cluster_analyse_<mode>_<stages>_<ranks>_<rank>.csv    how the rank spent its steps
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from headrace.errors import FormatError
from headrace.mindspore_files.folder import ProfilerFolder
from headrace.mindspore_files.steps import read_steps
from headrace.mindspore_files.texts import file_problem, member, number, numbers, read_json, rows_of, whole

_LINK = re.compile("([0-9]{1,9})-([0-9]{1,9})")
_PLACE = re.compile("(?:ascend|gpu)_cluster_analyse_(.+)_([0-9]{1,8})_([0-9]{1,8})_([0-9]{1,8})[.]csv")
#: Figures of the table of ranks, in its order.
_RANK_FIGURES = (
    "total_s", "iteration_gap_s", "forward_backward_s", "tail_s", "computation_s", "communication_alone_s",
    "stage_s", "receive_alone_s", "collective_communication_alone_s", "communication_s", "wait_s", "gflops",
)  # fmt: skip


class Link(NamedTuple):
    """The traffic of a link. ``source`` is ``destination`` for copies on one device."""

    source: int
    destination: int
    #: "SDMA", "RDMA".
    type: str
    total_s: float
    bytes: float
    #: RDMA only, else NaN.
    wait_s: float


@dataclass
class CollectivesStep:
    """Communication and wait are those of the main stream, links those of all streams."""

    number: int
    communication_s: float
    wait_s: float
    links: list[Link] = field(default_factory=list)
    #: Name, communication and wait.
    operators: list[tuple[str, float, float]] = field(default_factory=list)


@dataclass
class Collectives:
    steps: list[CollectivesStep]
    notes: list[str]


def read_collectives(path: str) -> Collectives:
    """Costs are milliseconds; newer versions, which give bandwidths in GB/s instead of KB/s, have
    microseconds.

    The last row, "-", is left out where there are others: it is their mean, in newer versions a copy of the
    last step. A row whose links or operators cannot be read keeps its costs, and is noted.
    """
    kind = "a table of collectives with the columns step_num, communication_cost and wait_cost"
    rows = rows_of(path, "step_num communication_cost wait_cost", kind)[1]
    is_average = bool(rows) and rows[-1].get("step_num") == "-"
    steps: list[CollectivesStep] = []
    in_gigabytes: list[bool] = []
    left_out = unread = 0
    for row in rows[:-1] if is_average and len(rows) > 1 else rows:
        found = (number(row.get(name)) for name in ("communication_cost", "wait_cost"))
        costs = [cost for cost in found if cost is not None]
        step = 0 if is_average and row is rows[-1] else whole(row.get("step_num"))
        if step is None or len(costs) < 2 or min(costs) < 0:
            left_out += 1
            continue
        steps.append(CollectivesStep(step, costs[0], costs[1]))
        try:
            _add_details(steps[-1], row, in_gigabytes)
        except (ValueError, TypeError, AttributeError, IndexError, RecursionError):
            unread += 1
    notes = [f"{left_out} rows of collectives could not be read"] if left_out else []
    notes += [f"the links or operators of {unread} rows of collectives could not be read"] if unread else []
    if not steps:
        raise FormatError(path, 0, "at least one step below the heading")
    unit_s = 1e-6 if 2 * sum(in_gigabytes) > len(in_gigabytes) else 1e-3
    for one in steps:
        one.communication_s *= unit_s
        one.wait_s *= unit_s
        one.operators = [(name, spent * unit_s, waited * unit_s) for name, spent, waited in one.operators]
    return Collectives(steps, notes)


def _add_details(step: CollectivesStep, row: dict[str, str], in_gigabytes: list[bool]) -> None:
    """Links are {"1-0": {"SDMA": [ms, units of 1000 bytes, bandwidth, wait in ms]}}, operators
    {"stream_41_0_AllReduce-op4582": [step, communication, wait, links]}."""

    def links_of(of: dict[str, Any]) -> Iterator[Link]:
        for name, types in of.items():
            ranks = _LINK.fullmatch(name)
            for kind, figures in types.items() if ranks else ():
                time_ms, size, bandwidth, wait_ms = (numbers(figures) + [math.nan] * 4)[:4]
                if ranks and time_ms >= 0 and size >= 0:
                    # A sum of KB/s is never below KB/ms; GB/s is a thousandth of that.
                    if time_ms and size and bandwidth > 0:
                        in_gigabytes.append(bandwidth < size / time_ms)
                    yield Link(int(ranks[1]), int(ranks[2]), kind, time_ms * 1e-3, size * 1e3, wait_ms * 1e-3)

    step.links = list(links_of(json.loads(row.get("link_info") or "{}")))
    for name, parts in json.loads(row.get("communication_operator_cost") or "{}").items():
        spent, waited = (max(0.0, number(part) or 0.0) for part in parts[1:3])
        step.operators.append((name, spent, waited))
        list(links_of(parts[3] if len(parts) > 3 else {}))


def read_parallel_steps(path: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Columns in seconds ("computation_s" is computation_time) and their averages. Other values than numbers
    are NaN.

    The file's last row is the average of all steps but the first, which the profiler may have cut off. A
    single row is a step.
    """
    heading, rows = rows_of(path, "", "a heading of column names")
    columns: dict[str, list[float]] = {}
    for name in filter(None, heading):
        unit_s, shown = (1e-3, f"{name[:-5]}_s") if name.endswith("_time") else (1.0, name)
        columns.setdefault(shown, [each * unit_s for each in numbers([row.get(name) for row in rows])])
    average = {
        name: values.pop() if len(values) > 1 else values[0] for name, values in columns.items() if values
    }
    return columns, average


def place_of(file_name: str) -> tuple[str, int, int, int] | None:
    """Mode, stage from 1 on, stages and ranks, by the name of a file of parallel steps; None for another
    file. The ranks of a stage follow each other."""
    if (found := _PLACE.fullmatch(file_name)) is None:
        return None
    stages, ranks, rank = max(1, int(found[2])), max(1, int(found[3])), int(found[4])
    return found[1], rank // max(1, ranks // stages) + 1, stages, ranks


def ranks_table(folder: ProfilerFolder) -> tuple[dict[str, list[Any]], list[str]]:
    """One row a rank: its mean step, how the job's mode divides it, what its collectives cost, and its speed
    in 10^9 FLOP/s. A figure that a rank's files do not have is None; a column that no rank has is absent."""
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    for rank in folder.ranks.values():
        rows.append({"rank": rank.rank, "mode": "", "stage": None})
        for kind, read in _RANK_READERS.items():
            try:
                rows[-1] |= read(rank.paths[kind]) if kind in rank.paths else {}
            except FormatError as error:  # noqa: PERF203 - each file on its own
                notes.append(file_problem(rank.paths[kind], error))
    shown = [name for name in _RANK_FIGURES if any(number(row.get(name)) is not None for row in rows)]
    return {name: [row.get(name) for row in rows] for name in ("rank", "mode", "stage", *shown)}, notes


def _mean_parallel(path: str) -> dict[str, Any]:
    mode, stage, *_ = place_of(Path(path).name) or ("", None)
    return {"mode": mode, "stage": stage, **read_parallel_steps(path)[1]}


def _mean_cost(path: str) -> dict[str, Any]:
    steps = read_collectives(path).steps
    names = ("communication_s", "wait_s")
    return {name: sum(getattr(step, name) for step in steps) / len(steps) for name in names}


_RANK_READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "step_trace": lambda path: read_steps(path).mean(),
    "cluster": _mean_parallel,
    "collectives": _mean_cost,
    "flops_summary": lambda path: {"gflops": number(member(read_json(path), "FLOPS"))},
}
