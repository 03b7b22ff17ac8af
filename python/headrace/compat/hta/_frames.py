"""The events of a rank as the data frame that Holistic Trace Analysis makes of them, rounding included."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from headrace.compat.hta._symbols import TraceSymbolTable
from headrace.traces.trace import Trace as Reader

#: The argument of an event, the column that it becomes, how it is read, and what stands where it is absent.
ARGUMENTS: tuple[tuple[str, str, str, Any], ...] = (
    ("bytes", "bytes", "integer", -1),
    ("memory bandwidth (GB/s)", "memory_bw_gbps", "number", 0.0),
    ("wait_on_stream", "wait_on_stream", "integer", -1),
    ("wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_record_corr_id", "integer", -1),
    ("Input Dims", "input_dims", "text", "-1"),
    ("Input type", "input_type", "text", "-1"),
    ("Input Strides", "input_strides", "text", "-1"),
    ("Python id", "python_id", "integer", -1),
    ("Python parent id", "python_parent_id", "integer", -1),
    ("Collective name", "collective_name", "text", ""),
    ("In msg nelems", "in_msg_nelems", "integer", 0),
    ("Out msg nelems", "out_msg_nelems", "integer", 0),
    ("dtype", "msg_dtype", "text", ""),
    ("Group size", "group_size", "integer", 0),
    ("Rank", "process_rank", "integer", -1),
    ("In split size", "in_split_size", "text", "[]"),
    ("Out split size", "out_split_size", "text", "[]"),
)

_SYNCHRONISATION = ("Event Sync", "Context Sync")


def read_arguments() -> dict[str, str]:
    """The arguments of events that `frame_of` needs, by their kinds."""
    return {name: kind for name, _, kind, _ in ARGUMENTS}


def _whole_microseconds(start_ns: np.ndarray, duration_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds; where one has decimals in the file, ends are rounded down and starts up."""
    if not ((start_ns % 1000).any() or (duration_ns % 1000).any()):
        return start_ns // 1000, duration_ns // 1000
    # The nearest double of the decimal number: a long double holds the quotient exactly enough for that.
    start = (start_ns.astype(np.longdouble) / 1000).astype(np.float64)
    duration = (duration_ns.astype(np.longdouble) / 1000).astype(np.float64)
    if not (start_ns % 1000).any():
        return start_ns // 1000, duration
    end = np.floor(start + duration)
    start = np.ceil(start)
    return start.astype(np.int64), (end - start).astype(np.int64)


def frame_of(trace: Reader, symbols: TraceSymbolTable) -> pd.DataFrame:
    """Complete events of one rank, in the order of its file; names are numbers of ``symbols``."""
    events = trace.events()
    columns = events._columns
    texts = columns.texts("name")
    name, category = columns.view("name"), columns.view("category")
    nothing = texts.index("") if "" in texts else -1
    dropped = [i for i, text in enumerate(texts) if text == "Trace"]
    kept = (columns.view("phase") == ord("X")) & (category != nothing) & ~np.isin(category, dropped)
    rows = np.flatnonzero(kept)

    used = np.unique(np.concatenate([name[rows], category[rows]]))
    symbols.add_symbols(texts[i] for i in used)
    number = np.full(len(texts) + 1, -1, dtype=np.int64)
    number[used] = [symbols.sym_index[texts[i]] for i in used]

    start, duration = _whole_microseconds(columns.view("start_ns")[rows], columns.view("duration_ns")[rows])
    lanes = trace.lanes()
    lane = columns.view("lane")[rows]
    position = columns.view("position")[rows].astype(np.int64)
    data: dict[str, Any] = {
        "index": position,
        "cat": number[category[rows]],
        "name": number[name[rows]],
        "pid": _of_lanes(lanes, "pid", "process")[lane],
        "tid": _of_lanes(lanes, "tid", "thread")[lane],
        "ts": start,
        "dur": duration,
        "stream": columns.view("stream")[rows].astype(np.int64),
        "correlation": columns.view("correlation")[rows].astype(np.int64),
    }
    for argument, column, kind, absent in ARGUMENTS:
        if column == "python_id":
            data["external_id"] = columns.view("external_id")[rows].astype(np.int64)
        data[column] = _argument(trace, argument, kind, absent, rows, len(kept))
    frame = pd.DataFrame(data, index=position)
    frame["index_correlation"] = _partners(frame, symbols)
    frame["iteration"] = _iterations(frame, symbols)
    frame["end"] = frame["ts"] + frame["dur"]
    return frame


def _of_lanes(lanes: list[dict[str, Any]], number: str, text: str) -> np.ndarray:
    """``pid`` or ``tid`` of every lane: numbers, or a mixture where one of them is a name."""
    values = [lane[number] if lane[text].lstrip("-").isdigit() else lane[text] for lane in lanes]
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, dtype=np.int64 if whole else object)


def _argument(trace: Reader, name: str, kind: str, absent: Any, rows: np.ndarray, events: int) -> np.ndarray:
    types = {"integer": np.int64, "number": np.float64, "text": object}
    whole = np.full(events, absent, dtype=types[kind])
    column = trace.argument(name)
    if len(column):
        whole[column._columns.view("row")] = column.column("value")
    return whole[rows]


def _partners(frame: pd.DataFrame, symbols: TraceSymbolTable) -> np.ndarray:
    """The launch of work of the device, and the other way round: 0 no partner, -1 no correlation."""
    correlation = frame["correlation"].to_numpy()
    of_device = on_device(frame, symbols)
    found = np.where(correlation >= 0, 0, -1)
    index = frame["index"].to_numpy()
    device = np.flatnonzero(of_device & (correlation >= 0))
    host = np.flatnonzero(~of_device & (correlation >= 0))
    for here, there in ((device, host), (host, device)):
        # The last of several partners in the file counts.
        order = there[np.argsort(correlation[there], kind="stable")]
        at = np.searchsorted(correlation[order], correlation[here], side="right") - 1
        hit = (at >= 0) & (len(order) > 0)
        hit[hit] = correlation[order][at[hit]] == correlation[here][hit]
        found[here[hit]] = index[order[at[hit]]]
    return found


def on_device(frame: pd.DataFrame, symbols: TraceSymbolTable) -> np.ndarray:
    """Rows of the device that are tied to a launch, and waits of the host that stand on a device's row."""
    tied = (frame["stream"] >= 0) & (frame["correlation"] >= 0)
    return (tied | frame["name"].isin(symbols.ids(_SYNCHRONISATION))).to_numpy()


def _iterations(frame: pd.DataFrame, symbols: TraceSymbolTable) -> np.ndarray:
    """The number of the profiler's step: by time on the host, by launch on the device."""
    step_names = symbols.matching(r"^ProfilerStep#\d+")
    stream = frame["stream"].to_numpy()
    operation = symbols.sym_index.get("cpu_op", -1)
    of_host = (stream < 0) | ((stream == 0) & (frame["cat"].to_numpy() == operation))
    steps = frame[frame["name"].isin(step_names) & of_host].sort_values("ts", kind="stable")
    iteration = np.full(len(frame), np.nan)
    iteration[of_host | (stream > 0)] = -1
    if len(steps):
        digits = re.compile(r"^ProfilerStep#(\d+)")
        numbers = np.array([int(digits.match(symbols.sym_table[i]).group(1)) for i in steps["name"]])  # type: ignore[union-attr]
        start = steps["ts"].to_numpy()
        end = start + steps["dur"].to_numpy()
        time = frame["ts"].to_numpy()
        at = np.searchsorted(start, time, side="right") - 1
        inside = of_host & (at >= 0)
        inside[inside] = time[inside] < end[at[inside]]
        iteration[inside] = numbers[at[inside]]
    launched = (stream > 0) & ~of_host & (frame["index_correlation"].to_numpy() > 0)
    place = pd.Series(np.arange(len(frame)), index=frame["index"])
    launches = place[frame["index_correlation"].to_numpy()[launched]].to_numpy()
    iteration[launched] = iteration[launches]
    return iteration if np.isnan(iteration).any() else iteration.astype(np.int64)
