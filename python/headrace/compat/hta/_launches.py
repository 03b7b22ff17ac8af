"""Launches, and the operators and kernel sequences that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headrace.compat.hta._trace import Trace

_KERNEL_LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "runFunction - job_prep_and_submit_for_execution",
)
_MEMORY_LAUNCHES = ("cudaMemcpyAsync", "cudaMemsetAsync")


def launch_statistics(trace: Trace, rank: int, include_memory_events: bool) -> pd.DataFrame:
    frame = trace.get_trace(rank)
    names = _KERNEL_LAUNCHES + (_MEMORY_LAUNCHES if include_memory_events else ())
    correlations = frame.loc[frame["name"].isin(trace.symbol_table.ids(names)), "correlation"]
    rows = frame[frame["correlation"].isin(correlations)]
    columns = ["correlation", "ts", "dur"]
    host = rows.loc[rows["stream"] == -1, columns]
    device = rows.loc[rows["stream"] != -1, columns]
    both = host.merge(device, on="correlation", suffixes=("_host", "_device"))
    delay = both["ts_device"] - both["ts_host"] - both["dur_host"]
    return pd.DataFrame(
        {
            "correlation": both["correlation"],
            "cpu_duration": both["dur_host"],
            "gpu_duration": both["dur_device"],
            "launch_delay": delay.clip(lower=0),
        }
    )


def aten_sequences(trace: Trace, rank: int, sort_by: Sequence[str]) -> pd.DataFrame:
    """The kernels that each ``aten::`` operator launched, and how late."""
    frame, symbols = trace.get_trace(rank), trace.symbol_table
    launched = symbols.matching(r"(cuda.*LaunchKernel)|(cuLaunchKernel)|(^runFunction)")
    launches = frame[frame["name"].isin(launched)]
    operators = frame[frame["name"].isin(symbols.matching(r"aten::"))].sort_values("ts", kind="stable")
    start = operators["ts"].to_numpy()
    end = start + operators["dur"].to_numpy()
    names = operators["name"].to_numpy()
    kernels = frame[frame["stream"] != -1]
    kernels = kernels[~kernels["correlation"].duplicated(keep="first")].set_index("correlation")
    calls: dict[tuple[object, int, int], list[tuple[str, float, float]]] = {}
    for launch in launches.itertuples():
        at = _innermost(start, end, launch.ts, launch.ts + launch.dur)
        if at < 0:
            continue
        kernel = kernels.loc[launch.correlation]
        call = calls.setdefault((launch.tid, int(names[at]), int(start[at])), [])
        call.append((symbols.sym_table[kernel["name"]], launch.ts - start[at], kernel["ts"] - launch.ts))
    rows = [
        (symbols.sym_table[name], " -> ".join(kernel for kernel, _, _ in call), call[0][1], call[0][2])
        for (_, name, _), call in calls.items()
    ]
    columns = ["aten_op_name", "kernel_sequence", "operator_delay", "runtime_delay"]
    groups = pd.DataFrame(rows, columns=columns).groupby(columns[:2])
    table = groups.agg(
        occurrence_count=("operator_delay", "count"),
        avg_aten_op_launch_delay=("operator_delay", "mean"),
        avg_runtime_delay=("runtime_delay", "mean"),
    ).reset_index()
    return table.round(3).sort_values(list(sort_by), ascending=False)


def _innermost(start: np.ndarray, end: np.ndarray, begins: float, ends: float) -> int:
    """The last range that began by ``begins`` and reaches ``ends``; -1 where none does."""
    at = int(np.searchsorted(start, begins, side="right")) - 1
    while at >= 0:
        stretch = max(0, at - 512)
        reaches = np.flatnonzero(end[stretch : at + 1] >= ends)
        if len(reaches):
            at = stretch + int(reaches[-1])
            # The first in the file of the operators that began at the same time.
            while at > 0 and start[at - 1] == start[at] and end[at - 1] >= ends:
                at -= 1
            return at
        at = stretch - 1
    return -1
