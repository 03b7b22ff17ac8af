"""The tree of events within events, on all threads of a rank, and the kernels below each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from headrace.compat.hta._trace import Trace


@dataclass
class CallGraph:
    """Arrays with one entry per row of the rank's frame (by place, not by index)."""

    frame: pd.DataFrame
    parent: np.ndarray  #: place of the caller (of a kernel: its launch), -1 at the top
    depth: np.ndarray  #: 0 at the top
    num_kernels: np.ndarray  #: kernels launched inside
    kernel_dur_sum: np.ndarray

    def ancestors(self, place: int) -> list[int]:
        """From the caller outwards."""
        chain = []
        while (place := int(self.parent[place])) >= 0:
            chain.append(place)
        return chain


def call_graph(trace: Trace, rank: int) -> CallGraph:
    frame = trace.get_trace(rank)
    rows = len(frame)
    parent = np.full(rows, -1, dtype=np.int64)
    stream = frame["stream"].to_numpy()
    host = np.flatnonzero(stream < 0)
    start = frame["ts"].to_numpy()
    end = start + frame["dur"].to_numpy()
    index = frame["index"].to_numpy()
    threads = frame.iloc[host].reset_index(drop=True).groupby(["pid", "tid"], sort=False).indices
    tops: dict[tuple[object, object], np.ndarray] = {}
    for thread, places in threads.items():
        places = host[places]
        order = places[np.lexsort((index[places], -end[places], start[places]))]
        _nest(order, start, end, parent)
        tops[thread] = order[parent[order] < 0]
    _adopt_backward(trace, frame, threads, host, tops, start, end, parent)

    place_of = pd.Series(np.arange(rows), index=index)
    place_of = place_of[~place_of.index.duplicated()]
    device = np.flatnonzero((stream >= 0) & (frame["index_correlation"].to_numpy() > 0))
    launch = place_of.reindex(frame["index_correlation"].to_numpy()[device]).to_numpy()
    known = ~np.isnan(launch)
    parent[device[known]] = launch[known].astype(np.int64)
    return _summed(frame, parent, device[known])


def _nest(order: np.ndarray, start: np.ndarray, end: np.ndarray, parent: np.ndarray) -> None:
    """Sets the parents of one thread's rows, which come by start, the longer ones first."""
    open_rows: list[int] = []
    starts, ends = start[order].tolist(), end[order].tolist()
    for place, begins, ends_at in zip(order.tolist(), starts, ends, strict=True):
        while open_rows and end[open_rows[-1]] <= begins:
            open_rows.pop()
        if open_rows:
            parent[place] = open_rows[-1]
        if ends_at > begins:
            open_rows.append(place)


def _adopt_backward(
    trace: Trace,
    frame: pd.DataFrame,
    threads: dict[tuple[object, object], np.ndarray],
    host: np.ndarray,
    tops: dict[tuple[object, object], np.ndarray],
    start: np.ndarray,
    end: np.ndarray,
    parent: np.ndarray,
) -> None:
    """One main thread and one of the backward pass: the latter's operators run inside the former's step."""
    symbols = trace.symbol_table
    name = frame["name"].to_numpy()
    steps, autograd = symbols.matching("ProfilerStep#"), symbols.containing(["autograd::"])
    main = [t for t, rows in threads.items() if np.isin(name[host[rows]], steps).any()]
    backward = [
        t for t, rows in threads.items() if np.isin(name[host[rows]], autograd).any() and t not in main
    ]
    if len(main) != 1 or len(backward) != 1:
        return
    marks = symbols.matching("## backward ##")
    rows_of_main = host[threads[main[0]]]
    around = rows_of_main[np.isin(name[rows_of_main], marks if len(marks) else steps)]
    order = around[np.argsort(start[around], kind="stable")]
    starts, reached = start[order], np.maximum.accumulate(end[order])
    for place in tops[backward[0]]:
        # Only those can lie around it that begin by its start, from the first that reaches its end.
        first = np.searchsorted(reached, end[place])
        near = np.sort(order[first : np.searchsorted(starts, start[place], side="right")])
        outside = near[end[near] >= end[place]]
        if len(outside):
            parent[place] = outside[np.argmin(end[outside] - start[outside])]


def _summed(frame: pd.DataFrame, parent: np.ndarray, kernels: np.ndarray) -> CallGraph:
    rows = len(frame)
    depth = np.full(rows, -1, dtype=np.int64)
    depth[parent < 0] = 0
    level = 0
    while True:
        below = (depth < 0) & (depth[parent] == level)
        if not below.any():
            break
        level += 1
        depth[below] = level
    count = np.zeros(rows, dtype=np.int64)
    total = np.zeros(rows)
    duration = frame["dur"].to_numpy()
    at, kernel = parent[kernels], kernels
    while len(at):
        np.add.at(count, at, 1)
        np.add.at(total, at, duration[kernel])
        up = parent[at]
        kernel, at = kernel[up >= 0], up[up >= 0]
    return CallGraph(frame, parent, depth, count, total)
