"""From a hit to the rows of the batch that it came with: dataset index, worker, file."""

from __future__ import annotations

from typing import NamedTuple

from headrace.watch.batches import Taken
from headrace.watch.datasets import file_of
from headrace.watch.fields import array_of
from headrace.watch.rows import Field


class BadRows(NamedTuple):
    """Rows of a batch that are not finite."""

    #: "batch 20, row 14 of images is not finite: dataset index 137, read by worker 2".
    says: str
    #: Dataset indices; empty where the loader does not know them.
    samples: list[int]


def bad_rows(taken: Taken | None) -> BadRows | None:
    """None: no batch is known, or what the program still holds of it is finite, or is on a device."""
    for name, value in taken.fields() if taken is not None else ():
        array = array_of(value)
        field = None if array is None or not array.shape else Field(name, array, True)
        if taken is not None and field is not None and field.is_float and field.nonfinite_rows:
            return _said(taken, name, field.nonfinite_rows)
    return None


def _said(taken: Taken, name: str, rows: list[int]) -> BadRows:
    more = f" ({len(rows)} rows are not)" if len(rows) > 1 else ""
    says = f"batch {taken.step}, row {rows[0]} of {name} is not finite{more}"
    indices = taken.indices
    samples = [indices[row] for row in rows if indices is not None and row < len(indices)]
    if samples:
        says += f": dataset index {samples[0]}"
        file = file_of(taken.dataset(), samples[0])
        if file:
            says += f" ({file})"
    if taken.worker >= 0:
        says += f", read by worker {taken.worker}" if samples else f": read by worker {taken.worker}"
    return BadRows(says, samples)
