"""Copies to a GPU: Headrace's devices beside what people write with torch, same batches, same results.

    python benchmarks/transport/cuda_copy.py

Every contender copies the same batches (one array each, in pageable or page-locked memory), and a kernel on
the consumer's stream reads what arrived; the sums are compared. The rates are of whole loops, from the first
batch to the end of the last kernel, medians of interleaved rounds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from headrace.transport import CudaDevice, open_device

BATCHES, ROUNDS = 24, 5
#: Of a kernel per MiB: about as long as its copy from pageable memory.
KERNEL_CYCLES = 140_000
Copy = Callable[[Any], Any]


def staged_by_hand(array: Any) -> Any:
    return torch.from_numpy(array).pin_memory().to("cuda", non_blocking=True)


def contenders(pinned: bool) -> dict[str, Copy]:
    native, by_torch = CudaDevice("cuda"), open_device("cuda")
    found: dict[str, Copy] = {
        "CudaDevice": lambda array: torch.from_dlpack(native.copy(array)),
        "TorchDevice": by_torch.copy,
    }
    if pinned:
        return {"tensor.to(non_blocking)": lambda array: array.to("cuda", non_blocking=True)} | found
    return {
        "tensor.to": lambda array: torch.from_numpy(array).to("cuda"),
        "pin_memory().to(non_blocking)": staged_by_hand,
    } | found


def run(copy: Copy, batches: list[Any], cycles: int) -> tuple[float, float]:
    """Seconds a batch, and the sum of all."""
    total = torch.zeros((), device="cuda", dtype=torch.float64)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for array in batches:
        on_device = copy(array)
        if cycles:
            torch.cuda._sleep(cycles)
        total += on_device.sum(dtype=torch.float64)
        del on_device
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / len(batches), float(total)


def measured(batches: list[Any], pinned: bool, cycles: int) -> tuple[dict[str, float], bool]:
    """Median seconds a batch of each contender, and whether all found the same sum."""
    named = contenders(pinned)
    steps: dict[str, list[float]] = {name: [] for name in named}
    sums = set()
    for turn in range(ROUNDS + 1):  # the first warms up
        for name, copy in named.items():
            seconds, total = run(copy, batches, cycles)
            sums.add(round(total, 3))
            if turn:
                steps[name].append(seconds)
    return {name: statistics.median(times) for name, times in steps.items()}, len(sums) == 1


def main() -> int:
    same = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for mebibytes in (1, 64):
        arrays = [np.random.default_rng(n).random(mebibytes << 18, "f4") for n in range(BATCHES)]
        for pinned in (False, True):
            batches = [torch.from_numpy(array).pin_memory() for array in arrays] if pinned else arrays
            for beside in ("", ", a kernel beside"):
                steps, agree = measured(batches, pinned, mebibytes * KERNEL_CYCLES if beside else 0)
                same = same and agree
                print(f"{mebibytes} MiB {'page-locked' if pinned else 'pageable'}{beside}", flush=True)
                for name, seconds in steps.items():
                    rate = mebibytes * 1.048576e-3 / seconds
                    print(f"  {name:<32}{1e3 * seconds:8.3f} ms {rate:6.1f} GB/s", flush=True)
                if not agree:
                    print("  RESULTS DIFFER")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
