"""The names that mark the parts of a step in a device trace: MindSpore's FP_POINT and BP_POINT."""

from __future__ import annotations

import logging
import math
import os
from typing import NamedTuple

from headrace import _core
from headrace.errors import UsageError
from headrace.traces.table import Table

_log = logging.getLogger("headrace")


class PointNames(NamedTuple):
    """Part of a name each; empty: the point is detected."""

    fp_point: str
    bp_point: str


def point_names(traces: _core.TraceSet, fp_point: str | None, bp_point: str | None) -> PointNames:
    """The arguments, else the environment (``FP_POINT``, ``BP_POINT``); "" disables both.

    Raises UsageError for an argument that matches nothing in the traces. The environment may be meant for
    another program, so a wrong name there is ignored with a warning.
    """
    given = {"fp_point": fp_point, "bp_point": bp_point}
    names = {point: _of_environment(point) if name is None else name for point, name in given.items()}
    for point, name in names.items():
        if not name or _names_work(traces, point, name):
            continue
        says = f"no work in a step has {name!r} in its name, nor in that of a range around its launch"
        if given[point] is not None:
            raise UsageError(f"{point}: {says} (`headrace trace FILE --table kernels` lists names)")
        _log.warning("%s in the environment is not used: %s", point.upper(), says)
        names[point] = ""
    return PointNames(**names)


def _of_environment(point: str) -> str:
    return os.environ.get(point.upper(), "").strip()


def _names_work(traces: _core.TraceSet, point: str, name: str) -> bool:
    """True also for traces without steps or steps without computation, where no name can match."""
    is_fp = point == "fp_point"
    found = _core.step_points(traces, name if is_fp else "", "" if is_fp else name)
    steps = Table(found[0]).to_dict()
    if is_fp:
        return not steps["step"] or _any_known(steps["iteration_gap_s"])
    return not _any_known(steps["iteration_gap_s"]) or _any_known(steps["tail_s"])


def _any_known(figures: list[float]) -> bool:
    return not all(map(math.isnan, figures))
