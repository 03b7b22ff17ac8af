"""A rank's files of MindSpore's profiler as a summary: step trace, parallel steps, collectives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace.common.plain import error_line
from headrace.errors import Error
from headrace.mindspore_files.collectives import place_of as place_in_name
from headrace.results.profiler_tables import Tables
from headrace.traces.table import Table

#: The main file of a rank.
STEP_TRACE = re.compile(r"step_trace_raw_(\d{1,9})_detail_time\.csv")
#: Lines of links, of a rank with the files of thousands of steps.
_MAX_LINKS = 128


def steps_of(path: str, rank: int) -> tuple[list[int], dict[str, list[float]], list[str]]:
    """Numbers and columns of the steps, seconds, and notes. Raises Error for a damaged step trace.

    `own` is without communication that no computation hides. The wait for the input is the gap in front of a
    step, and idle time counts as computation: the files have no more. Only files of pipelines have `bubble`,
    the wait for another stage.
    """
    tables = Tables(str(Path(path).parent), rank)
    rows = list(tables["steps"].rows())
    notes: list[str] = []
    every = _rows(tables, "parallel_steps", notes)  # those of data-parallel jobs have no communication
    parallel = {row["step"]: row for row in every if "communication_alone_s" in row}
    rows = [row for row in rows if not parallel or row["step"] in parallel]
    waits = [parallel[row["step"]]["communication_alone_s"] if parallel else 0.0 for row in rows]
    own = [max(0.0, row["total_s"] - wait) for row, wait in zip(rows, waits, strict=True)]
    gaps = [min(row["iteration_gap_s"], each) for row, each in zip(rows, own, strict=True)]
    columns = {
        "total": [float(row["total_s"]) for row in rows],
        "own": own,
        "input": gaps,
        "compute": [each - gap for each, gap in zip(own, gaps, strict=True)],
    }
    received = [parallel[row["step"]].get("receive_alone_s", math.nan) for row in rows] if parallel else []
    if received and all(map(math.isfinite, received)):
        columns["bubble"] = received
    if not parallel:
        notes.append("no communication in MindSpore's files, so a wait for other ranks does not show")
    return [int(row["step"]) for row in rows], columns, notes


def place_of(path: str, rank: int) -> tuple[int, int] | None:
    """Stage and stages of the rank's pipeline, by the name of its file of parallel steps."""
    for file in Path(path).parent.glob(f"*_cluster_analyse_*_{rank}.csv"):
        _, stage, stages, ranks = place_in_name(file.name) or ("", 0, 0, 0)
        if stages > 1 and ranks >= stages:
            return min(stage, stages) - 1, stages
    return None


def links_of(path: str, rank: int, place: tuple[int, int] | None) -> tuple[str, list[str]]:
    """Records of links as `analysis/cluster/link_records.h` has them. Ranks are those within the stage."""
    notes: list[str] = []
    sums: dict[tuple[int, int, str], list[float]] = {}
    steps = set()
    for row in _rows(Tables(str(Path(path).parent), rank), "links", notes):
        steps.add(row["step"])
        one = sums.setdefault((row["source"], row["destination"], str(row["type"])), [0.0, 0.0])
        one[0] += row["bytes"]
        one[1] += row["total_s"]
    group = f"stage {place[0]}" if place else "job"
    lines = []
    for (source, target, kind), (size, spent) in sorted(sums.items(), key=lambda one: -one[1][1]):
        own = source == target  # a copy on the device says which rank of the group this is
        figures = "0\t0" if own else f"{size / len(steps):.6g}\t{spent / len(steps):.6g}"
        lines.append(f"l\t{' '.join(kind.split())[:100]}\t{group}\t{source}>{target}\t1\t{figures}\n")
    return "".join(lines[:_MAX_LINKS]), notes


def _rows(tables: Mapping[str, Table], name: str, notes: list[str]) -> Iterable[dict[str, Any]]:
    """Empty, and said, if the file is damaged."""
    if name not in list(tables):  # `in` of a mapping reads the table
        return []
    try:
        return list(tables[name].rows())
    except Error as error:
        notes.append(error_line(error))
        return []
