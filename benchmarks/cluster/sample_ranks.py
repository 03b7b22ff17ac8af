"""What real ranks' steps are made of: the summaries of sample traces, as the base of drawn jobs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from headrace.cluster import _files, _summary
from headrace.errors import Error

#: Fewer steps do not show how a job's steps differ.
FEWEST_STEPS = 3


@dataclass
class Sample:
    """One recorded rank. Columns have an entry a step, as shares of the mean own time."""

    name: str
    compute: Any
    input: Any
    host: Any
    #: The summary's text of the longest kernels.
    kernels: str = "[]"


def drawn() -> Sample:
    """In place of samples: 95 % computation, 5 % launches, all steps alike."""
    return Sample("drawn", numpy.array([0.95]), numpy.array([0.0]), numpy.array([0.05]))


def samples() -> list[Sample]:
    """Of HEADRACE_CONFORMANCE_DATA; one that is made up if there are none."""
    default = Path(__file__).parents[2] / ".." / "shared" / "data"
    folder = Path(os.environ.get("HEADRACE_CONFORMANCE_DATA") or default) / "kineto"
    found = [one for path in sorted(folder.glob("*.json.gz")) if (one := _sample(path)) is not None]
    return found or [drawn()]


def _sample(path: Path) -> Sample | None:
    try:
        summary = _summary.opened(_summary.summarise(_files.Files("trace", str(path), path.name)))
    except Error:
        return None
    columns = {
        name: numpy.frombuffer(summary["steps"][name], dtype=numpy.float32).astype(float)
        for name in _summary.COLUMNS
    }
    own = columns["own"]
    if len(own) < FEWEST_STEPS or own.min() <= 0:
        return None
    compute = numpy.minimum(columns["compute"], own)
    waits = numpy.minimum(columns["input"], own - compute)
    mean = own.mean()
    return Sample(path.name, compute / mean, waits / mean, (own - compute - waits) / mean, summary["kernels"])
