"""A rank's files, reduced to a summary of bounded size.

A summary is plain data (JSON) and depends on the rank's files alone, so it can be made where these are.
"""

from __future__ import annotations

import base64
import json
import math
import os
import tempfile
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import _core
from headrace.cluster import _mindspore
from headrace.cluster._files import Files
from headrace.cluster._job import listed, packed_operations
from headrace.errors import Error
from headrace.results.load import in_order
from headrace.results.report import Report
from headrace.traces import files as _trace_files
from headrace.traces.trace import Trace

if TYPE_CHECKING:
    from headrace.results.data import Diagnosis

#: Part of every key of a kept summary: it changes with what a summary says, of a job of a fleet, too.
VERSION = 9
#: Newest steps that are kept; a segment has no more.
MAX_STEPS = 512
_MAX_KERNELS = 40
MAX_TEXT = 400
#: No job has more. A file may say anything.
_MAX_RANKS = 10_000_000
#: Columns of the step table, seconds. `own`: without the time in which the rank waited for others.
COLUMNS = ("total", "own", "input", "compute")
#: Parts of the mean step. `communication`: exposed, without waits for another stage (`bubble`);
#: `host`: the rest. `overlapped` is hidden by `compute`, so it is not part of the sum.
PARTS = ("step", "compute", "communication", "bubble", "input", "host", "overlapped")
#: Buckets of the histogram of steps in an octave.
_PER_OCTAVE = 4


def summarise(files: Files) -> dict[str, Any]:
    """The summary of a rank. Raises Error or OSError if its files cannot be read."""
    if files.kind == "mindspore":
        return _of_mindspore(files)
    if files.kind == "trace":
        return _of_trace(files)
    if not _trace_files.is_url(files.path):
        return _of_segment(files, files.path)
    with tempfile.TemporaryDirectory(prefix="headrace-cluster-") as folder:
        return _of_segment(files, _trace_files.fetch(files.path, Path(folder), lambda _done, _all: None))


def packed(values: Iterable[float], code: str) -> str:
    """Numbers as base64 of their bytes: a thousandth of the time of JSON numbers."""
    return base64.b64encode(array(code, values).tobytes()).decode("ascii")


def opened(summary: dict[str, Any]) -> dict[str, Any]:
    """Makes bytes of the columns of its steps."""
    summary["steps"] = {
        name: column if isinstance(column, bytes) else base64.b64decode(column)
        for name, column in summary["steps"].items()
    }
    return summary


def step_table(steps: Sequence[int], columns: Mapping[str, Sequence[float]]) -> dict[str, str]:
    """The newest steps, one row each. A value that is unknown is NaN."""
    return {
        "step": packed(steps[-MAX_STEPS:], "q"),
        **{name: packed(columns[name][-MAX_STEPS:], "f") for name in COLUMNS},
    }


def parts(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Means of `PARTS`, seconds; without the columns that the files do not record.

    The first step is left out if there are others, because it often contains the warm-up.
    """
    first = 1 if len(columns["total"]) > 1 else 0
    known = {name: _mean(values[first:]) for name, values in columns.items()}
    exposed = known["total"] - known["own"]
    bubble = min(known.get("bubble", 0.0), exposed)
    found = {
        **{name: value for name, value in known.items() if name in PARTS},
        "step": known["total"],
        "communication": exposed - bubble,
        "host": max(0.0, known["own"] - known["input"] - known["compute"]),
    }
    if "bubble" in known:
        found["bubble"] = bubble
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def histogram(values: Iterable[float]) -> dict[str, int]:
    """Counts by the logarithm of the time; histograms of ranks add."""
    counts: dict[str, int] = {}
    for value in values:
        if value > 0 and math.isfinite(value):
            bucket = str(math.floor(_PER_OCTAVE * math.log2(value)))
            counts[bucket] = counts.get(bucket, 0) + 1
    return counts


def quantile(counts: Mapping[str, int], share: float) -> float | None:
    """A quantile of a histogram: the middle of the bucket, 9 % wide to each side. None if it is empty."""
    wanted = share * sum(counts.values())
    seen = 0
    for bucket in sorted(counts, key=int):
        seen += counts[bucket]
        if seen >= wanted:
            return float(2.0 ** ((int(bucket) + 0.5) / _PER_OCTAVE))
    return None


def _summary(
    files: Files,
    rank: int,
    source: str,
    steps: Sequence[int],
    columns: Mapping[str, Sequence[float]],
    notes: Iterable[str] = (),
    **more: Any,
) -> dict[str, Any]:
    if not 0 <= rank < _MAX_RANKS:
        raise Error(f"{files.name}: says that it is of rank {rank}, which no job has")
    return {
        "rank": rank,
        "source": source,
        "name": files.name,
        "running": files.running,
        "steps": step_table(steps, columns),
        "parts": parts(columns),
        "histogram": histogram(columns["total"]),
        "diagnosis": None,
        "kernels": "[]",
        "links": "",
        "places": {},
        "notes": [note[:MAX_TEXT] for note in notes],
        **more,
    }


def _of_segment(files: Files, path: str) -> dict[str, Any]:
    loaders = in_order(((path, one) for one in _core.segment_loaders(path)), os.path.dirname(path))  # noqa: PTH120
    if not loaders:
        raise Error(f"{files.name}: a recording without a loader: nothing was wrapped in it")
    report = Report(_core.segment_profile_json(path, loaders[0][1]["index"]))
    profile = report.to_dict()["profile"]
    samples = profile["sink"]["sequence"]
    first = int(profile["sink"]["steps"]) - len(samples)
    waits, computed = ([float(one[name]) for one in samples] for name in ("wait_s", "compute_s"))
    totals = [wait + compute for wait, compute in zip(waits, computed, strict=True)]
    diagnosis = report.diagnosis
    return _summary(
        files,
        int(profile["rank"]) if files.rank is None else files.rank,
        "segment",
        range(first, first + len(samples)),
        {"total": totals, "own": waits, "input": waits, "compute": computed},
        parts={"step": _mean(totals), "input": _mean(waits)} if samples else {},
        demand_s=max((float(op["demand_s"]) for op in profile["operators"]), default=0.0),
        diagnosis={
            "kind": diagnosis.kind,
            "operator": diagnosis.operator,
            "cause": diagnosis.cause,
            "summary": diagnosis.summary[:MAX_TEXT],
            "advice": advice_of(diagnosis),
        },
    )


def advice_of(diagnosis: Diagnosis) -> list[str]:
    """The first text for each parameter; further ones are alternatives to it."""
    first = {one.parameter: one.text[:MAX_TEXT] for one in reversed(diagnosis.advice)}
    return [one.text[:MAX_TEXT] for one in diagnosis.advice if first.pop(one.parameter, None)][:3]


def _of_mindspore(files: Files) -> dict[str, Any]:
    rank = files.rank or 0
    numbers, columns, notes = _mindspore.steps_of(files.path, rank)
    place = _mindspore.place_of(files.path, rank)
    links, unread = _mindspore.links_of(files.path, rank, place)
    places = {} if place is None else {"pipeline": list(place)}
    notes = [*notes, *unread][:5]
    return _summary(files, rank, "mindspore", numbers, columns, notes, links=links, places=places)


def _of_trace(files: Files) -> dict[str, Any]:
    trace = Trace.load(files.path)
    idle = {row["step"]: row for row in trace.device_idle().steps.rows()}
    # From the end of one step's work to the end of the next one's: a host that runs ahead ends its steps long
    # before its device does.
    steps = {
        row["step"]: idle[row["step"]]["window_s"] if row["step"] in idle else row["duration_s"]
        for row in trace.steps().rows()
        if row["step"] >= 0 and row["complete"]
    }
    work = {row["step"]: row for row in trace.step_time().rows() if row["step"] in steps}
    numbers = sorted(work)

    def within_step(name: str) -> list[float]:
        return [min(steps[one], _known(work[one][name])) for one in numbers]

    totals = [float(steps[one]) for one in numbers]
    exposed = within_step("communication_not_overlapped_s")
    columns = {
        "total": totals,
        "own": [max(0.0, total - wait) for total, wait in zip(totals, exposed, strict=True)],
        "input": [_known(idle.get(one, {}).get("input_s")) for one in numbers],
        "compute": within_step("computing_s"),
        "overlapped": within_step("overlapped_s"),
    }
    bubble = [_known(work[one]["bubble_s"]) for one in numbers]
    if any(bubble):  # PyTorch's traces do not distinguish receives from other transfers
        columns["bubble"] = bubble
    notes = list(trace.notes[:5])
    if len(trace) > 1:
        notes.insert(0, f"{files.name} holds {len(trace)} ranks, of which the first is read here")
    profile = _core.profile_of(files.path) if not _trace_files.is_url(files.path) else None
    links, unread = _core.link_text(trace._traces, profile, numbers)
    notes += unread[:5]
    if not numbers:
        notes.append("no complete step in the trace: call profiler.step() in the loop")
    elif not any(exposed):
        notes.append("no exposed communication in the trace, so a wait for other ranks does not show")
    rank = trace.ranks[0] if files.rank is None else files.rank
    places = _core.parallel_places(trace._traces, profile, rank)
    return _summary(
        files,
        rank,
        "trace",
        numbers,
        columns,
        notes,
        kernels=_kernels(trace, len(numbers)),
        links=links,
        places={role: [index, size] for role, index, size in places},
        job=packed_operations(trace, rank, numbers, listed(files.stages)),
    )


def _kernels(trace: Any, steps: int) -> str:
    """The longest computations: name, seconds a step, calls a step. As text: most are never looked at."""
    rows = [row for row in trace.kernels(memory=False).rows() if "communication" not in str(row.get("kind"))]
    kernels = [
        {"name": str(row["name"])[:MAX_TEXT], "step_s": row["total_s"] / steps, "calls": row["calls"] / steps}
        for row in rows[:_MAX_KERNELS]
        if steps
    ]
    return json.dumps(kernels, separators=(",", ":"))


def _known(value: Any) -> float:
    """0 for time that a step has none of."""
    return 0.0 if value is None or math.isnan(value) else float(value)
