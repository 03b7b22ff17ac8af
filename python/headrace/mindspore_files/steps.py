"""The steps that a device ran: step_trace_raw_<rank>_detail_time.csv, and the names of the operators at which
forward begins and backward ends: step_trace_point_info[_<rank>].json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.errors import FormatError
from headrace.mindspore_files.batches import Batches, GetNexts
from headrace.mindspore_files.texts import member, number, read_json, rows_of, whole

#: Seconds of a tick of the device's counter.
_TICK_S = 1e-8
_START, _END = "_start_point", "_end_point"
#: Collectives that a profile lists by name; the table of steps has all.
_MAX_SEGMENTS = 256
#: Steps that a profile lists, as those of any other loader.
LISTED_STEPS = 512


@dataclass
class Step:
    """Seconds. ``start_s`` is the end of the step before; ``iteration_gap_s`` lasts until forward begins."""

    number: int
    start_s: float
    end_s: float
    total_s: float
    iteration_gap_s: float
    forward_backward_s: float | None
    #: None in inference.
    tail_s: float | None
    #: By name: start, since the step's start, and duration.
    collectives: dict[str, tuple[float, float]]

    @property
    def is_whole(self) -> bool:
        parts = (self.total_s, self.iteration_gap_s, self.forward_backward_s or 0, self.tail_s or 0)
        return 0 < self.start_s <= self.end_s and min(parts) >= 0

    @property
    def communication_s(self) -> float:
        """Time in which at least one collective ran."""
        covered = until = 0.0
        for start, takes in sorted(self.collectives.values()):
            covered += max(0.0, start + takes - max(start, until))
            until = max(until, start + takes)
        return covered

    @property
    def parts(self) -> dict[str, float | None]:
        names = ("total_s", "iteration_gap_s", "forward_backward_s", "tail_s")
        return {name: getattr(self, name) for name in names}


@dataclass
class StepTrace:
    #: Names of the collectives, as the file has them.
    collectives: list[str]
    steps: list[Step]
    #: The file's own last row: in most versions the mean without the first step.
    average: Step | None
    notes: list[str]

    def mean(self) -> dict[str, float | None]:
        """Parts of the file's own average if it is there and whole, else of all steps."""
        if self.average is not None and self.average.total_s > 0:
            return self.average.parts
        parts = [step.parts for step in self.steps]
        mean: dict[str, float | None] = {}
        for name in parts[0] if parts else ():
            values = [part[name] for part in parts]
            known = sum(value or 0.0 for value in values) / len(values)
            mean[name] = None if values.count(None) == len(values) else known
        return mean


def read_steps(path: str) -> StepTrace:
    """A row that lacks its points is left out, and noted."""
    kind = "a table of steps with the columns step_num, start_point and end_point"
    heading, rows = rows_of(path, "step_num start_point end_point", kind)
    names = [column[: -len(_START)] for column in heading if column.endswith(_START)]
    known = set(heading)
    trace = StepTrace([name for name in names if name and name + _END in known], [], None, [])
    left_out = 0
    for at, row in enumerate(rows, 1):
        found = {
            name: figure * _TICK_S for name, value in row.items() if (figure := number(value)) is not None
        }
        step_number = whole(row.get("step_num"))
        step = _step(found, step_number or 0, trace.collectives)
        if at == len(rows) and not step_number:  # the average has "-" or 0
            trace.average = step
        elif step_number is None or not step.is_whole:
            left_out += 1
        else:
            trace.steps.append(step)
    if left_out:
        trace.notes.append(f"{left_out} rows of the step trace lack a point and are left out")
    if not trace.steps and trace.average is None:
        raise FormatError(path, 0, "at least one step below the heading")
    return trace


def _step(found: dict[str, float], step_number: int, names: list[str]) -> Step:
    start, end = found.get("start_point", 0.0), found.get("end_point", 0.0)
    collectives = {}
    for name in names:
        began, ended = found.get(name + _START, 0.0), found.get(name + _END, 0.0)
        if 0 < began <= ended and start <= began:
            collectives[name] = (began - start, ended - began)
    forward = found.get("fp_and_bp", found.get("fp"))
    gap, total = found.get("iteration_interval", 0.0), found.get("total", end - start)
    return Step(step_number, start, end, total, gap, forward, found.get("tail"), collectives)


def read_points(path: str) -> tuple[str, str]:
    """Names of the operators at which forward begins and backward ends; "" where the file does not say.

    The file is one object, a list with an object for each step, or, in newer versions, an object for each
    graph or step below its number.
    """
    found = read_json(path)
    if isinstance(found, list):
        found = found[0] if found else None
    if not isinstance(found, dict):
        raise FormatError(path, 0, 'an object with "fp_start" and "bp_end"')
    keys = ("fp_start", "bp_end")
    named = [each for each in [found, *found.values()] if any(member(each, key) is not None for key in keys)]
    names = [member(named[0], key) for key in keys] if named else ["", ""]
    begins, ends = (name if isinstance(name, str) else "" for name in names)
    return begins, ends


def device_of(
    trace: StepTrace, points: tuple[str, str], getnext: GetNexts | None, batches: Batches | None
) -> dict[str, Any]:
    """The `device` of a profile."""
    device: dict[str, Any] = {"idle_s": None, "waits_from": "trace", "step_notes": trace.notes}
    steps, mean = trace.steps, trace.mean()
    if not steps:
        return device
    segments = []
    for name in trace.collectives[:_MAX_SEGMENTS]:
        found = [step.collectives[name] for step in steps if name in step.collectives]
        if found:
            start, takes = (sum(each) / len(found) for each in zip(*found, strict=True))
            segments.append({"name": name, "start_s": start, "takes_s": takes})
    shown = [
        step.parts | {"step": step.number, "communication_s": step.communication_s}
        for step in steps[-LISTED_STEPS:]
    ]
    figures = {
        "steps": len(steps),
        "of_steps": len(steps),
        "tail_steps": sum(step.tail_s is not None for step in steps),
        "communication_s": sum(step.communication_s for step in steps) / len(steps),
        "communication_overlap_s": None,
        "segments": segments,
        "gap": _gap(mean["iteration_gap_s"] or 0.0, getnext, batches),
        "fp_point": points[0],
        "bp_point": points[1],
        "sequence": [{**step, "communication_overlap_s": None} for step in shown],
    }
    device["window_s"] = sum(step.total_s for step in steps)
    device["steps"] = figures | {name: part for name, part in mean.items() if name != "total_s"}
    return device


def _gap(gap_s: float, getnext: GetNexts | None, batches: Batches | None) -> list[dict[str, Any]]:
    """The parts of the gap. Only the device's GetNext calls show it; the rest is unknown."""
    if getnext is None or gap_s <= 0:
        return []
    waiting = min(gap_s, getnext.mean_s(is_empty=True))
    parts = {}
    if batches is not None and (levels := batches.levels):
        empty = levels.count(0) / len(levels)  # how often the host queue was empty when a batch was taken
        parts = {"processing": waiting * empty, "transmission": waiting * (1 - empty)}
    parts["getnext"] = min(gap_s - waiting, getnext.mean_s(is_empty=False))
    parts["unknown"] = gap_s - sum(parts.values())
    order = sorted(parts.items(), key=lambda part: -part[1])
    return [{"cause": cause, "gap_s": part} for cause, part in order if part > 0]
