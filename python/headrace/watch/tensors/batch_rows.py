"""From a hit to the rows of the batch that it came with: dataset index, worker, file."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from headrace.watch.batches import Taken
from headrace.watch.datasets import file_of
from headrace.watch.fields import tensor_of


class BadRows(NamedTuple):
    """Rows of a batch that are not finite."""

    #: "batch 20, row 14 of images is not finite: dataset index 137, read by worker 2".
    says: str
    #: Dataset indices; empty where the loader does not know them.
    samples: list[int]


def bad_rows(taken: Taken | None) -> BadRows | None:
    """None: no batch is known, or what the program still holds of it is finite."""
    for name, array in taken.fields() if taken is not None else ():
        rows = _not_finite(array)
        if taken is not None and rows:
            return _said(taken, name, rows)
    return None


def _not_finite(array: Any) -> list[int]:
    """Numbers of the rows with a NaN or an Inf; [-1]: it has no rows."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    tensor = tensor_of(array)
    if tensor is not None:
        if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.numel():
            return []
        bad = ~torch.isfinite(tensor)
        if not bad.dim():
            return [-1] if bool(bad) else []
        return [int(one) for one in bad.reshape(bad.shape[0], -1).any(1).nonzero()[:, 0].tolist()]
    if numpy is not None and type(array) is numpy.ndarray:
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
