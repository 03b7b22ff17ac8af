"""From a hit to the rows of the batch that it came with: dataset index, worker, file."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from headrace.watch.batches import Taken
from headrace.watch.datasets import file_of
from headrace.watch.fields import fields_of


class BadRows(NamedTuple):
    """Rows of a batch that are not finite."""

    #: "batch 20, row 14 of images is not finite: dataset index 137, read by worker 2".
    says: str
    #: Dataset indices; empty where the loader does not know them.
    samples: list[int]


def bad_rows(taken: Taken | None) -> BadRows | None:
    """None: no batch is known, or all of it is finite."""
    if taken is None:
        return None
    for name, array in fields_of(taken.batch):
        rows = _not_finite(array)
        if rows:
            return _said(taken, name, rows)
    return None


def _not_finite(array: Any) -> list[int]:
    """Numbers of the rows with a NaN or an Inf; [-1]: it has no rows."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(array, torch.Tensor):
        if not (array.is_floating_point() or array.is_complex()) or not array.numel():
            return []
        bad = ~torch.isfinite(array.detach())
        if not bad.dim():
            return [-1] if bool(bad) else []
        return [int(one) for one in bad.reshape(bad.shape[0], -1).any(1).nonzero()[:, 0].tolist()]
    if numpy is not None and isinstance(array, numpy.ndarray):
        if array.dtype.kind not in "fc" or not array.size:
            return []
        bad = ~numpy.isfinite(array)
        if not bad.ndim:
            return [-1] if bool(bad) else []
        return [int(one) for one in bad.reshape(bad.shape[0], -1).any(1).nonzero()[0]]
    return []


def _said(taken: Taken, name: str, rows: list[int]) -> BadRows:
    of = f" of {name}" if name else ""
    if rows == [-1]:
        return BadRows(f"batch {taken.step}: {name or 'its value'} is not finite", [])
    more = f" ({len(rows)} rows are not)" if len(rows) > 1 else ""
    says = f"batch {taken.step}, row {rows[0]}{of} is not finite{more}"
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
