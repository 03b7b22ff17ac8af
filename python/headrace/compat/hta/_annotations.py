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
    places = kernels.reset_index(drop=True).groupby(["pid", "tid"]).indices
    start = kernels["ts"].to_numpy()
    end = start + kernels["dur"].to_numpy()
    for annotation in annotations.sort_values("dur", ascending=False, kind="stable").itertuples():
        rows = places.get((annotation.pid, annotation.tid))
        if rows is None:
            continue
        inside = (start[rows] < annotation.ts + annotation.dur) & (end[rows] > annotation.ts)
        marked[rows[inside]] = annotation.name
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
