"""The 2-norms of gradients, in one call."""

from __future__ import annotations

import sys
from typing import Any

from headrace.watch.tensors.values import is_sharded


def dense(tensors: list[Any]) -> list[Any]:
    """The values of tensors that are in this process: of a sparse one, and of a sharded one, its part.

    tensors: see `values.is_tensor`.
    """
    plain = sys.modules["torch"].Tensor
    if all(type(one) is plain and not one.is_sparse for one in tensors):
        return tensors  # nearly always
    found = []
    for one in tensors:
        values = (one.to_local() if is_sharded(one) else one).detach()
        found.append(values.coalesce().values() if values.is_sparse else values)
    return found


def norms(values: list[Any]) -> Any:
    """A float32 tensor of one norm each, on the device of the first. Call it without gradients recorded.

    Float16 is summed in float32: two values of 60,000 overflow otherwise.
    """
    torch = sys.modules["torch"]
    if not values:
        return torch.zeros(0)
    dtypes = {one.dtype for one in values}
    usual = dtypes == {torch.float32}
    found = torch._foreach_norm(values) if usual else _in_float32(torch, values, dtypes)
    try:
        stacked = torch.stack(found)
    except RuntimeError:  # on several devices, or of several dtypes
        first = found[0].device
        stacked = torch.stack([one.to(first, torch.float32, non_blocking=True) for one in found])
    return stacked if stacked.dtype == torch.float32 else stacked.float()


def _in_float32(torch: Any, values: list[Any], dtypes: set[Any]) -> list[Any]:
    low = {torch.float16, torch.bfloat16}
    if dtypes <= low:
        try:
            return list(torch._foreach_norm(values, 2, torch.float32))
        except TypeError:
            pass  # an older torch, whose function takes no dtype
    return [
        torch.linalg.vector_norm(one, dtype=torch.float32 if one.dtype in low else None) for one in values
    ]
