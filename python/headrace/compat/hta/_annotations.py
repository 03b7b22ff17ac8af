"""Annotations of the user, on the host and as the device saw them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from headrace.compat.hta._breakdown import aggregate
from headrace.compat.hta._symbols import shorten_name
from headrace.compat.hta._trace import Trace


def kernels_with_annotations(trace: Trace, rank: int, expand: bool, shorten: bool) -> pd.DataFrame | None:
    frame, symbols = trace.get_trace(rank), trace.symbol_table
    category = symbols.sym_index.get("gpu_user_annotation")
    if category is None:
        return None
    annotations = frame[frame["cat"] == category]
    if annotations.empty:
        return None
    kernels = frame[frame["stream"] >= 0].copy()
    marked = np.full(len(kernels), -1, dtype=np.int64)
    start = kernels["ts"].to_numpy()
    end = start + kernels["dur"].to_numpy()
    lanes = {}
    for lane, rows in kernels.reset_index(drop=True).groupby(["pid", "tid"]).indices.items():
        rows = rows[np.argsort(start[rows], kind="stable")]
        lanes[lane] = (rows, start[rows], np.maximum.accumulate(end[rows]))
    for annotation in annotations.sort_values("dur", ascending=False, kind="stable").itertuples():
        if (annotation.pid, annotation.tid) not in lanes:
            continue
        rows, starts, reached = lanes[annotation.pid, annotation.tid]
        # Only those can overlap it that begin before its end, from the first that reaches beyond its start.
        first = np.searchsorted(reached, annotation.ts, side="right")
        rows = rows[first : np.searchsorted(starts, annotation.ts + annotation.dur)]
        marked[rows[end[rows] > annotation.ts]] = annotation.name
    kernels["user_annotation"] = marked
    if expand:
        names = np.array([*symbols.sym_table, ""], dtype=object)
        kernels["s_name"] = names[kernels["name"].to_numpy()]
        kernels["s_user_annotation"] = names[marked]
        if shorten:
            kernels["s_name"] = kernels["s_name"].map(shorten_name)
    return kernels


def annotation_breakdown(
    trace: Trace, on_device: bool, duration_ratio: float, num_kernels: int, allowlist: Sequence[str] | None
) -> pd.DataFrame | None:
    symbols = trace.symbol_table
    category = symbols.sym_index.get("gpu_user_annotation" if on_device else "user_annotation")
    if category is None:
        return None
    keep = (
        symbols.matching("|".join(re.escape(part) for part in allowlist), anywhere=True)
        if allowlist
        else None
    )
    parts = []
    for rank, frame in trace.traces.items():
        part = aggregate(frame[frame["cat"] == category], trace, duration_ratio, num_kernels, keep)
        part["rank"] = rank
        parts.append(part)
    return pd.concat(parts, ignore_index=True).sort_values(["rank", "name"], ignore_index=True)
