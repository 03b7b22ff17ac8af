"""Time series of launch queues and copies, and the trace with them as counters.

Where several changes fall into one microsecond, Holistic Trace Analysis leaves their order to the sort of
pandas. So the same rows are sorted here in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headrace.compat.hta._breakdown import by_kind, of_device
from headrace.compat.hta._trace import Trace

LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipMemcpyAsync",
    "hipMemsetAsync",
    "hipMemcpyWithStream",
    "runFunction - job_prep_and_submit_for_execution",
)


def queue_length(trace: Trace, rank: int) -> pd.DataFrame | None:
    """Launched and not yet begun, by stream: +1 at a launch, -1 at the beginning of its work."""
    frame = trace.get_trace(rank)
    device = of_device(frame)
    if device.empty:
        return None
    launches = frame[frame["name"].isin(trace.symbol_table.ids(LAUNCHES)) & (frame["index_correlation"] > 0)]
    begun = device[device["correlation"].isin(launches["correlation"])]
    places = begun[["correlation", "pid", "tid", "stream"]]
    launched = launches[["index", "ts", "correlation"]].merge(places, on="correlation")
    columns = ["index", "ts", "pid", "tid", "stream"]
    steps = pd.concat([launched[columns].assign(queue_length=1), begun[columns].assign(queue_length=-1)])
    steps = steps.sort_values("ts").set_index("index")
    parts = [part.assign(queue_length=part["queue_length"].cumsum()) for _, part in steps.groupby("stream")]
    return pd.concat(parts) if parts else None


def _summary(series: Mapping[int, pd.DataFrame], key: str, value: str) -> pd.DataFrame | None:
    """Statistics of ``value`` by rank and ``key``; its columns have two levels."""
    parts = [
        table.assign(rank=rank)[["rank", key, value]].groupby(["rank", key]).describe()
        for rank, table in series.items()
    ]
    return pd.concat(parts) if parts else None


def queue_length_summary(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame | None:
    return _summary(series, "stream", "queue_length")


def blocked_on_full_queue(
    trace: Trace, series: Mapping[int, pd.DataFrame], max_queue_length: int
) -> pd.DataFrame:
    rows = []
    for rank, table in series.items():
        frame = trace.get_trace(rank)
        whole = frame["ts"].max() - frame["ts"].min()
        found: dict[str, Any] | None = None
        for stream, points in table.groupby("stream"):
            lasted = points["ts"].shift(-1) - points["ts"]
            full = points["queue_length"] >= max_queue_length
            if full.any():  # the last stream of a rank is the one that is told
                time = float(lasted[full].sum())
                found = {
                    "rank": rank,
                    "stream": stream,
                    "duration_at_max_queue_length": time,
                    "relative_duration_at_max_queue_length": time / whole,
                }
        if found:
            rows.append(found)
    columns = ["rank", "stream", "duration_at_max_queue_length", "relative_duration_at_max_queue_length"]
    return pd.DataFrame(rows, columns=columns)


def _copy_kind(name: str) -> str:
    if name.startswith("Memset"):
        return "Memset"
    return name[:11] if name.startswith("Memcpy") else "Memcpy Unknown"


def memory_bandwidth(trace: Trace, rank: int) -> pd.DataFrame | None:
    """Bandwidth of the copies under way, by kind of copy; None for a rank without copies."""
    rows = by_kind(of_device(trace.get_trace(rank)), trace)["MEMORY"]
    if rows.empty:
        return None
    kinds = np.array([_copy_kind(name) for name in trace.symbol_table.sym_table], dtype=object)
    rows = rows.assign(name=kinds[rows["name"].to_numpy()], dur=rows["dur"].where(rows["dur"] != 0, 1))
    begins = rows[["ts", "pid", "name", "memory_bw_gbps"]]
    ends = begins.assign(ts=rows["ts"] + rows["dur"], memory_bw_gbps=-rows["memory_bw_gbps"])
    series = pd.concat([begins, ends], ignore_index=True).sort_values("ts")
    return pd.concat(
        part.assign(memory_bw_gbps=part["memory_bw_gbps"].cumsum()) for _, part in series.groupby("name")
    )


def memory_bandwidth_summary(series: Mapping[int, pd.DataFrame]) -> pd.DataFrame | None:
    busy = {rank: table[table["memory_bw_gbps"] > 0] for rank, table in series.items()}
    return _summary(busy, "name", "memory_bw_gbps")


def counter_events(trace: Trace, series: pd.DataFrame, value: str, label: str) -> list[dict[str, Any]]:
    """Counter events of the Chrome format, on the clock of the file."""
    named = "name" in series
    return [
        {
            "ph": "C",
            "name": row["name"] if named else label,
            "pid": row["pid"],
            "id": row["name"] if named else row["stream"],
            "ts": row["ts"] + int(trace.min_ts),
            "args": {label: row[value]},
        }
        for row in series.to_dict("records")
    ]


def with_counters(trace: Trace, queues: bool, copies: bool, ranks: Sequence[int], suffix: str) -> None:
    for rank in ranks:
        raw = trace.get_raw_trace_for_one_rank(rank)
        if queues and (series := queue_length(trace, rank)) is not None:
            raw["traceEvents"] += counter_events(trace, series, "queue_length", "Queue Length")
        if copies and (series := memory_bandwidth(trace, rank)) is not None:
            raw["traceEvents"] += counter_events(trace, series, "memory_bw_gbps", "Memcpy BW")
        path = Path(trace.trace_files[rank].removesuffix(".gz"))
        stem = path.name.removesuffix(".json")
        trace.write_raw_trace(str(path.with_name(f"{stem}{suffix}.json.gz")), raw)
