"""Kernel sequences that an operator launches again and again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from headrace.compat.hta._call_graph import CallGraph, call_graph
from headrace.compat.hta._trace import Trace

_COLUMNS = ["pattern", "count", "GPU kernel duration (us)", "CPU op duration (us)"]


def frequent_sequences(
    trace: Trace,
    operator_name: str,
    output_dir: str,
    min_pattern_len: int,
    rank: int,
    top_k: int,
    compress_other_kernels: bool,
) -> pd.DataFrame:
    graph = call_graph(trace, rank)
    symbols, frame = trace.symbol_table, graph.frame
    name = frame["name"].to_numpy()
    candidates = np.flatnonzero(
        np.isin(name, symbols.containing([operator_name])) & (frame["stream"].to_numpy() < 0)
    )
    if len(candidates):
        candidates = candidates[graph.depth[candidates] == graph.depth[candidates].min()]
    chosen = candidates[graph.num_kernels[candidates] >= min_pattern_len]
    kernels = _kernels_below(graph, chosen)
    patterns = {
        int(place): "|".join(symbols.sym_table[i] for i in [name[place], *name[kernels[int(place)]]])
        for place in chosen
    }
    duration = frame["dur"].to_numpy()
    rows = [(pattern, 1, graph.kernel_dur_sum[place], duration[place]) for place, pattern in patterns.items()]
    table = pd.DataFrame(rows, columns=_COLUMNS).groupby("pattern", as_index=False).sum()
    table = table.sort_values(["count", "pattern"], ascending=[False, True], ignore_index=True).head(top_k)
    if len(table):
        counts = dict(zip(table["pattern"], table["count"].tolist(), strict=True))
        _overlay(trace, rank, output_dir, graph, patterns, kernels, counts, compress_other_kernels)
    return table


def _kernels_below(graph: CallGraph, chosen: np.ndarray) -> dict[int, np.ndarray]:
    """The kernels launched inside each of the rows, by start."""
    wanted = set(chosen.tolist())
    found: dict[int, list[int]] = {place: [] for place in wanted}
    for kernel in np.flatnonzero(graph.frame["stream"].to_numpy() >= 0):
        for place in graph.ancestors(int(kernel)):
            if place in wanted:
                found[place].append(int(kernel))
    start = graph.frame["ts"].to_numpy()
    return {
        place: np.array(sorted(below, key=lambda k: start[k]), dtype=np.int64)
        for place, below in found.items()
    }


def _overlay(
    trace: Trace,
    rank: int,
    output_dir: str,
    graph: CallGraph,
    patterns: dict[int, str],
    kernels: dict[int, np.ndarray],
    counts: dict[str, int],
    compress: bool,
) -> None:
    """The rank's trace with ``args.Patterns`` on the events of the sequences told."""
    raw = trace.get_raw_trace_for_one_rank(rank)
    position = graph.frame["index"].to_numpy()
    marked: dict[int, dict[str, int]] = {}
    for place, pattern in patterns.items():
        if pattern in counts:
            for row in [place, *kernels[place].tolist()]:
                marked.setdefault(int(position[row]), {})[pattern] = counts[pattern]
    for i, event in enumerate(raw["traceEvents"]):
        if i in marked:
            event.setdefault("args", {})["Patterns"] = marked[i]
        elif compress and event.get("ph") == "X":
            event.pop("args", None)
            event["name"] = str(trace.symbol_table.sym_index.get(event.get("name", ""), event.get("name")))
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    trace.write_raw_trace(str(folder / f"overlaid_{Path(trace.trace_files[rank]).name}"), raw)
