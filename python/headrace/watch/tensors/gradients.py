"""The 2-norms of gradients, in one call."""

from __future__ import annotations

import sys
from typing import Any


def dense(gradient: Any) -> Any:
    """The values of a gradient that are in this process: of a sparse one, and of a sharded one, its part."""
    gradient = gradient.detach()
    local = getattr(gradient, "to_local", None)
    if local is not None:
        gradient = local()
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def norms(gradients: list[Any]) -> Any:
    """A float32 tensor (float64 for those) of one norm each, on the device of the first.

    Float16 is summed in float32: two values of 60,000 overflow otherwise.
    """
    torch = sys.modules["torch"]
    values = [dense(one) for one in gradients]
    if not values:
        return torch.zeros(0)
    if any(one.dtype in (torch.float16, torch.bfloat16) or one.is_complex() for one in values):
        found = _in_float32(torch, values)
    else:
        found = list(torch._foreach_norm(values))
    first = found[0].device
    return torch.stack([one.to(first, torch.float32, non_blocking=True) for one in found])


def _in_float32(torch: Any, values: list[Any]) -> list[Any]:
    if all(one.dtype in (torch.float16, torch.bfloat16) for one in values):
        try:
            return list(torch._foreach_norm(values, 2, torch.float32))
        except TypeError:
            pass  # an older torch, whose function takes no dtype
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
    return [torch.linalg.vector_norm(one, dtype=wide.get(one.dtype)) for one in values]
