"""The critical path in the words of Holistic Trace Analysis: a graph, its summary, and its overlay."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headrace import _core
from headrace.compat.hta._trace import Trace

_LOCKS = ["cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"]
_BLOCKING = [
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemcpyAsync",
]
#: Matches no name: nothing is taken for loading data unless the caller says so.
_NOTHING = "\x00"
_TYPES = {
    "operator_kernel": "critical_path_operator",
    "dependency": "critical_path_dependency",
    "launch_delay": "critical_path_kernel_launch_delay",
    "kernel_kernel_delay": "critical_path_kernel_kernel_delay",
    "sync_dependency": "critical_path_sync_dependency",
}


class CPGraph:
    """Starts and ends of events as nodes, what had to come after what as edges; times are microseconds."""

    def __init__(self, trace: Trace, rank: int, found: _core.CriticalPath) -> None:
        self.rank = rank
        self._trace = trace
        self._found = found

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node: its time, the index of its event, whether it is the event's start."""
        columns = self._found.nodes()
        position = self._positions()
        return pd.DataFrame(
            {
                "ts": columns.view("time_ns") / 1000,
                "ev_idx": position[columns.view("row")],
                "is_start": columns.view("is_start").astype(bool),
            }
        )

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per edge: its nodes, weight and type, and whether the critical path goes along it."""
        columns = self._found.edges()
        return pd.DataFrame(
            {
                "begin": columns.view("from"),
                "end": columns.view("to"),
                "weight": columns.view("weight_ns") / 1000,
                "type": [_TYPES[name] for name in columns.values("type")],
                "event_idx": self._positions()[columns.view("row")],
                "critical": columns.view("on_path").astype(bool),
            }
        )

    @property
    def critical_path_edges(self) -> pd.DataFrame:
        """The edges of the path."""
        return self.edges[self.edges["critical"]]

    def number_of_nodes(self) -> int:
        return len(self.nodes)

    def number_of_edges(self) -> int:
        return len(self.edges)

    def _positions(self) -> np.ndarray:
        """The index in the file of each row of the native columns; behind the last, -1 for nobody's."""
        position = self._trace.readers[self.rank].events()._columns.view("position").astype(np.int64)
        return np.append(position, -1)

    def get_critical_path_breakdown(self) -> pd.DataFrame:
        """One row per edge of the path: how long, of what type, whose event, bound by what."""
        path = self._found.path
        row = path.view("row")
        frame = pd.DataFrame(
            {
                "event_idx": self._positions()[row],
                "duration": path.view("duration_s") * 1e6,
                "type": [_TYPES[name] for name in path.values("type")],
                "s_name": path.values("name"),
                "cat": path.values("category"),
                "pid": path.values("process"),
                "tid": path.values("thread"),
                "stream": path.view("stream"),
                "index": self._positions()[row],
                "bound_by": path.values("bound_by"),
            }
        )
        frame["duration"] = frame["duration"].round(3)
        return frame

    def summary(self) -> pd.Series:
        """Percent of the path's time by what bounds it."""
        breakdown = self.get_critical_path_breakdown()
        time = breakdown.groupby("bound_by")["duration"].sum()
        return (100 * time / time.sum()).sort_values(ascending=False) if len(time) else time


def critical_path(
    trace: Trace,
    rank: int,
    annotation: str,
    instance_id: int | tuple[int, int] | None,
    data_load_events: Sequence[str] | None,
) -> tuple[CPGraph, bool] | None:
    frame = trace.get_trace(rank)
    if annotation and not frame["name"].isin(trace.symbol_table.containing([annotation])).any():
        return None
    instances = instance_id if isinstance(instance_id, tuple) else (instance_id or 0, instance_id or 0)
    found = _core.critical_path(
        trace.readers[rank]._traces,
        [],
        annotation,
        instances,
        list(data_load_events or [_NOTHING]),
        os.environ.get("CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE") == "1",
        trace.dropped_from_ns.get(rank),
        _LOCKS,
        _BLOCKING,
    )
    return CPGraph(trace, rank, found), found.valid


def overlay(
    trace: Trace, rank: int, graph: CPGraph, output_dir: str, only_critical: bool, all_edges: bool
) -> str:
    """The rank's trace with ``args.critical`` on the path's events, and arrows along its edges."""
    raw = trace.get_raw_trace_for_one_rank(rank)
    events: list[dict[str, Any]] = raw["traceEvents"]
    critical = {int(i) for i in graph.critical_path_edges["event_idx"] if i >= 0}
    for index in critical:
        events[index].setdefault("args", {})["critical"] = 1
    if only_critical and not all_edges:
        kept = [
            event
            for i, event in enumerate(events)
            if event.get("ph") != "X" or i in critical or event.get("cat") == "user_annotation"
        ]
    else:
        kept = list(events)
    owner, time = graph.nodes["ev_idx"].tolist(), graph.nodes["ts"].tolist()
    drawn = graph.edges if all_edges else graph.critical_path_edges
    for number, edge in enumerate(drawn.itertuples()):
        if owner[edge.begin] == owner[edge.end] or owner[edge.begin] < 0 or owner[edge.end] < 0:
            continue
        for phase, node in (("s", edge.begin), ("f", edge.end)):
            event = events[owner[node]]
            arrow = {
                "ph": phase,
                "id": number,
                "cat": "critical_path",
                "name": edge.type,
                "pid": event["pid"],
                "tid": event["tid"],
                "ts": time[node],
                "args": {"weight": int(edge.weight), "critical": bool(edge.critical)},
            }
            kept.append({**arrow, "bp": "e"} if phase == "f" else arrow)
    raw["traceEvents"] = kept
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"overlaid_critical_path_{Path(trace.trace_files[rank]).name}"
    trace.write_raw_trace(str(path), raw)
    return str(path)
