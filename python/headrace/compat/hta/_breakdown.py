"""Temporal, kernel and idle-time breakdowns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from headrace.compat.hta._intervals import Ranges, merged, overlap, time_in_states, total
from headrace.compat.hta._trace import Trace

STATISTICS = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
KINDS = ("COMPUTATION", "COMMUNICATION", "MEMORY")


def of_device(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that count as the device's."""
    return frame[frame["stream"] != -1]


def ranges(rows: pd.DataFrame) -> Ranges:
    start = rows["ts"].to_numpy()
    return merged(start, start + rows["dur"].to_numpy())


def by_kind(rows: pd.DataFrame, trace: Trace) -> dict[str, pd.DataFrame]:
    kinds = trace.symbol_table.kernel_types()[rows["name"].to_numpy()]
    return {kind: rows[kinds == kind] for kind in (*KINDS, "OTHER")}


def temporal_breakdown(trace: Trace) -> pd.DataFrame:
    rows = []
    for rank in trace.traces:
        device = of_device(trace.traces[rank])
        if device.empty:
            raise IndexError(f"rank {rank} has no event of a device")
        busy = ranges(device)
        span = busy[1][-1] - busy[0][0]
        idle = span - total(busy)
        compute = total(ranges(by_kind(device, trace)["COMPUTATION"]))
        other = total(busy) - compute
        rows.append(
            {
                "rank": rank,
                "idle_time(us)": float(idle),
                "compute_time(us)": float(compute),
                "non_compute_time(us)": float(other),
                "kernel_time(us)": float(span),
                "idle_time_pctg": round(100 * idle / span, 2),
                "compute_time_pctg": round(100 * compute / span, 2),
                "non_compute_time_pctg": round(100 * other / span, 2),
            }
        )
    return pd.DataFrame(rows)


def communication_overlap(trace: Trace) -> pd.DataFrame:
    rows = []
    for rank, frame in trace.traces.items():
        kinds = by_kind(of_device(frame), trace)
        communication = ranges(kinds["COMMUNICATION"])
        both = overlap(communication, ranges(kinds["COMPUTATION"]))
        whole = total(communication)
        rows.append(
            {"rank": rank, "comp_comm_overlap_pctg": round(100 * both / whole, 2) if whole else np.nan}
        )
    return pd.DataFrame(rows)


def kernel_breakdown(
    trace: Trace, duration_ratio: float, num_kernels: int, include_memory_kernels: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    kinds = KINDS if include_memory_kernels else KINDS[:2]
    times: dict[str, float] = {}
    kernels = []
    for rank, frame in trace.traces.items():
        rows = by_kind(of_device(frame), trace)
        for state, time in time_in_states([ranges(rows[kind]) for kind in kinds]).items():
            name = " overlapping ".join(kind for i, kind in enumerate(kinds) if state >> i & 1)
            times[name] = times.get(name, 0) + time
        for kind in kinds:
            part = aggregate(rows[kind], trace, duration_ratio, num_kernels)
            part["kernel_type"] = kind
            part["rank"] = rank
            kernels.append(part)
    types = pd.DataFrame({"kernel_type": sorted(times), "sum": [times[name] for name in sorted(times)]})
    types = types.sort_values("sum", ascending=False, ignore_index=True)
    types["percentage"] = (100 * types["sum"] / types["sum"].sum()).round(1)
    table = pd.concat(kernels, ignore_index=True) if kernels else pd.DataFrame()
    return types, table.sort_values(["kernel_type", "name", "rank"], ignore_index=True)


def aggregate(
    rows: pd.DataFrame,
    trace: Trace,
    duration_ratio: float,
    num_kernels: int,
    keep: np.ndarray | None = None,
) -> pd.DataFrame:
    """Durations by name; where there are more names than ``num_kernels``, the tail is called "others".

    Then, as Holistic Trace Analysis does it, the statistics are those of the sums. ``keep``: numbers of names
    that stay whatever their rank.
    """
    table = rows.groupby("name")["dur"].agg(["sum", "max", "min", "std", "mean"])
    names = trace.symbol_table.texts(pd.Series(table.index, dtype="int64")).to_numpy()
    table = table.reset_index(drop=True).fillna({"std": 0.0})
    table.insert(0, "name", names)
    table = table.sort_values("name").sort_values("sum", ascending=False, ignore_index=True)
    if len(table) > num_kernels:
        reached = table["sum"].cumsum()
        tail = (reached > reached.quantile(duration_ratio)) | (np.arange(len(table)) >= num_kernels)
        if keep is not None and len(keep):
            kept = {trace.symbol_table.sym_table[i] for i in keep}
            tail &= ~table["name"].isin(kept)
        table.loc[tail, "name"] = "others"
        sums = table.groupby("name")["sum"]
        table = sums.agg(["sum", "max", "min", "std", "mean"]).reset_index().fillna({"std": 0.0})
    return table.rename(
        columns={
            "sum": "sum (us)",
            "max": "max (us)",
            "min": "min (us)",
            "std": "stddev",
            "mean": "mean (us)",
        }
    )


_DEVICE_WORK = ("kernel", "Kernel", "gpu_memset", "Memset", "gpu_memcpy", "Memcpy", "mtia_ccp_events")
_WAITS = np.array(["host_wait", "kernel_wait", "other"])


def idle_time(
    trace: Trace, ranks: Sequence[int], streams: Sequence[int] | None, statistics: bool, delay: int
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    categories = trace.symbol_table.ids(_DEVICE_WORK)
    columns = ["rank", "stream", "idle_category", "idle_time", "idle_time_ratio"]
    rows, described = [], []
    for rank in ranks:
        frame = trace.get_trace(rank)
        work = frame[(frame["stream"] >= 0) & frame["cat"].isin(categories)]
        start_of = pd.Series(frame["ts"].to_numpy(), index=frame["index"])
        start_of = start_of[~start_of.index.duplicated()]
        of_rank: list[tuple[int, int, str, float, float]] = []
        places = work.reset_index(drop=True).groupby("stream", sort=False).indices
        for stream in work["stream"].unique() if streams is None else streams:
            if stream not in places:
                continue
            ours = work.iloc[places[stream]].sort_values("ts")
            gap, category = _gaps(ours, start_of, delay)
            times = {name: gap[category == name].sum() for name in _WAITS}
            whole = sum(times.values())
            for name in _WAITS:
                if name != "other" and not (category == name).any():
                    continue
                ratio = round(times[name] / whole, 2) if whole else np.nan
                of_rank.append((rank, stream, name, float(times[name]), ratio))
                described.append((rank, stream, name, gap[category == name]))
        rows.append(pd.DataFrame(of_rank, columns=columns))
    table = pd.concat(rows) if rows else pd.DataFrame(columns=columns)
    return table.round(2), _described(described) if statistics else None


def _gaps(ours: pd.DataFrame, start_of: pd.Series, delay: int) -> tuple[np.ndarray, np.ndarray]:
    start = ours["ts"].to_numpy()
    previous_end = start[:-1] + ours["dur"].to_numpy()[:-1]
    gap = start[1:] - previous_end
    launch = start_of.reindex(ours["index_correlation"]).to_numpy()[1:]
    category = np.where(launch > previous_end, "host_wait", np.where(gap < delay, "kernel_wait", "other"))
    return gap.astype(np.float64), category


def _described(parts: list[tuple[int, int, str, np.ndarray]]) -> pd.DataFrame:
    rows = []
    for rank, stream, name, gaps in parts:
        rows.append([rank, stream, name, *pd.Series(gaps).describe().round(2)])
    return pd.DataFrame(rows, columns=["rank", "stream", "idle_category", *STATISTICS]).set_index(
        "idle_category"
    )
