"""Counters that the device's profiler took of every kernel, beside the operators that launched them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from headrace.compat.hta._call_graph import call_graph
from headrace.compat.hta._trace import Trace

logger = logging.getLogger("headrace")


def counters_with_operators(trace: Trace, ranks: Sequence[int]) -> list[pd.DataFrame]:
    return [table for rank in ranks if (table := _of_rank(trace, rank)) is not None]


def _of_rank(trace: Trace, rank: int) -> pd.DataFrame | None:
    symbols, frame = trace.symbol_table, trace.get_trace(rank)
    category = frame["cat"]
    measured = frame[category == symbols.sym_index.get("cuda_profiler_range", -2)].sort_values(
        "ts", kind="stable"
    )
    launches = frame[
        (category == symbols.sym_index.get("cuda_runtime", -2))
        & frame["name"].isin(symbols.matching("cudaLaunchKernel"))
    ].sort_values("ts", kind="stable")
    if measured.empty or len(measured) != len(launches):
        logger.warning("rank %d: %d measured kernels, %d launches", rank, len(measured), len(launches))
        return None
    graph = call_graph(trace, rank)
    place_of = {int(index): place for place, index in enumerate(frame["index"])}
    operation = symbols.sym_index.get("cpu_op", -2)
    events = trace.get_raw_trace_for_one_rank(rank)["traceEvents"]
    names, categories = frame["name"].to_numpy(), frame["cat"].to_numpy()
    rows: list[dict[str, Any]] = []
    for range_index, launch_index in zip(measured["index"], launches["index"], strict=True):
        chain = [
            p for p in reversed(graph.ancestors(place_of[int(launch_index)])) if categories[p] == operation
        ]
        stack = [symbols.sym_table[names[place]] for place in chain]
        rows.append(
            {
                "name": symbols.sym_table[names[place_of[int(range_index)]]],
                "launch_index": int(launch_index),
                "op_stack": stack,
                "top_level_op": stack[0] if stack else np.nan,
                "bottom_level_op": stack[-1] if stack else np.nan,
                **events[int(range_index)].get("args", {}),
            }
        )
    return pd.DataFrame(rows)
