"""The tables of a rank's files: steps, batches, operators of the device, memory.

Times in seconds end in `_s`, shares in `_share`; a missing number is NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core
from headrace.errors import FormatError, UsageError
from headrace.mindspore_files.batches import read_batches, read_getnext
from headrace.mindspore_files.collectives import ranks_table, read_collectives, read_parallel_steps
from headrace.mindspore_files.folder import ProfilerFolder, RankFolder
from headrace.mindspore_files.steps import read_steps
from headrace.mindspore_files.texts import items, member, number, read_json, rows_of, whole
from headrace.traces.table import Table

Columns = dict[str, list[Any]]
#: Columns and notes.
Found = tuple[Columns, list[str]]

#: The table that is made of all ranks of the folder, if two or more of them have such files.
_RANKS, _OF_JOBS = "ranks", {"step_trace", "cluster", "collectives"}
#: Columns whose values add up over the rows of a group.
_ADDS_UP = {"count", "total_s", "total_share", "wait_s", "push_s", "dispatch_s", "execution_s"}
#: Factors of units in headings: "total_time(us)" is total_time_s.
_UNITS = {"(us)": 1e-6, "(ms)": 1e-3, "(ns)": 1e-9}
#: Other names for columns of files. A time without a unit is milliseconds, a start or an end microseconds.
_AICORE_TYPES = (
    "op_type=type;kernel_type=type;execution_time=total_s;total_time=total_s;execution_frequency=count"
)
_AICORE = "full_op_name=operator;full_kernel_name=operator;execution_time=mean_s"
_AICPU = (
    "serial_number=number;kernel_type=type;node_type_name=type;total_time=total_s;dispatch_time=dispatch_s;"
    "execution_time=execution_s;run_start=start_s;run_end=end_s"
)
#: Stages of the pipeline on the host, as the host profiler counted them.
_DATASET = (
    "Operation=operation;Stage=stage;Occurrences=count;Avg. time(us)=mean_s;Avg. time (us)=mean_s;"
    "Custom Info=info"
)


def _csv(path: str, other_names: str = "") -> Found:
    """Columns without a name, and those whose name is taken, are left out."""
    heading, rows = rows_of(path, "", "a heading of column names")
    columns: Columns = {}
    names = dict(pair.split("=") for pair in other_names.split(";") if pair)
    for name in filter(None, heading):
        unit = name[-4:]
        shown = names.get(name, f"{name[:-4]}_s" if unit in _UNITS else name)
        factor = _UNITS.get(unit, 1.0)
        if shown != name and unit not in _UNITS and shown.endswith("_s"):
            factor = 1e-3 if name.endswith("_time") else 1e-6
        if shown not in columns:
            columns[shown] = _typed([row.get(name, "") for row in rows], factor)
    return columns, []


def _typed(texts: list[str], factor: float = 1.0) -> list[Any]:
    """Whole numbers, numbers or texts, whichever all values are."""
    if factor == 1 and None not in (found := [whole(text) for text in texts]):
        return found
    numbers = [number(text) for text in texts]
    if any(value is None and text not in ("", "-") for value, text in zip(numbers, texts, strict=True)):
        return texts
    return [math.nan if value is None else value * factor for value in numbers]


def _columns(names: str, rows: Iterable[tuple[Any, ...]], notes: list[str] | None = None) -> Found:
    """The table of rows; ``names`` are those of its columns, with blanks between them."""
    values = list(zip(*rows, strict=True)) or [()] * len(names.split())
    return {name: list(column) for name, column in zip(names.split(), values, strict=True)}, notes or []


def _steps(path: str) -> Found:
    trace = read_steps(path)
    rows = [(step.number, step.start_s, *step.parts.values()) for step in trace.steps]
    return _columns("step start_s total_s iteration_gap_s forward_backward_s tail_s", rows, trace.notes)


def _collectives(path: str) -> Found:
    trace = read_steps(path)
    rows = [(step.number, name, *times) for step in trace.steps for name, times in step.collectives.items()]
    return _columns("step name start_s total_s", rows, trace.notes)


def _batches(path: str) -> Found:
    file = read_batches(path)
    rows = [
        (one.number, *(None if ms is None else ms * 1e-3 for ms in (one.end_ms, one.wait_ms, one.push_ms)),
         one.level, one.capacity)
        for one in file.batches
    ]  # fmt: skip
    return _columns("batch end_s wait_s push_s level capacity", rows, file.notes)


def _aicore_types(path: str) -> Found:
    columns, _ = _csv(path, _AICORE_TYPES)
    columns.pop("percent", None)
    if "total_s" not in columns or "count" not in columns:
        raise FormatError(path, 0, "columns of times and frequencies")
    times = [number(value) for value in columns["total_s"]]
    counts = [number(value) for value in columns["count"]]
    total = sum(time or 0.0 for time in times)
    pairs = zip(times, counts, strict=True)
    columns["mean_s"] = [time / count if time is not None and count else None for time, count in pairs]
    columns["total_share"] = [time / total if time is not None and total else None for time in times]
    return columns, []


def _aicore_operators(folder: RankFolder, kind: str) -> Found:
    """With the types and shapes of the framework's file, where it is there."""
    columns, _ = _csv(folder.paths[kind], _AICORE)
    if "operator" not in columns or "framework" not in folder.paths:
        return columns, []
    heading, rows = rows_of(folder.paths["framework"], "", "a heading of column names")
    by_name = {row.get("full_op_name") or row.get("full_kernel_name", ""): row for row in reversed(rows)}
    shown = {"op_type": "type", "subgraph": "subgraph", "stream_id": "stream", "op_info": "shapes"}
    for name, column in shown.items():
        if name in heading:
            columns[column] = [by_name.get(str(op), {}).get(name, "") for op in columns["operator"]]
    return columns, []


def _figures(path: str) -> Found:
    rows = [(name, found) for name, value in _object(path) if (found := number(value)) is not None]
    return _columns("figure value", rows)


def _object(path: str) -> list[tuple[str, Any]]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise FormatError(path, 0, "an object of figures or graphs")
    return list(document.items())


def _memory_curve(path: str) -> Found:
    graphs = [(name, items(member(graph, "lines"))) for name, graph in _object(path)]
    rows = [(name, at, number(value)) for name, lines in graphs for at, value in enumerate(lines)]
    return _columns("graph place memory", rows)


def _memory_breakdown(path: str) -> Found:
    """The tensors that are alive at each place; the columns are those of the first tensor."""
    rows = [
        (name, at, tensor)
        for name, graph in _object(path)
        for at, found in enumerate(items(member(graph, "breakdowns")))
        for tensor in (found if isinstance(found, list) else [found])
        if isinstance(tensor, dict)
    ]
    columns, _ = _columns("graph place", [row[:2] for row in rows])
    for name in rows[0][2] if rows else ():
        if name not in columns:
            columns[name] = _typed([_text(tensor.get(name)) for *_, tensor in rows])
    return columns, []


def _text(value: object) -> str:
    return (
        value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"))
    )


def _parallel_steps(path: str) -> Found:
    columns, _ = read_parallel_steps(path)
    count = len(next(iter(columns.values()), []))
    return {"step": list(range(1, count + 1)), **columns}, []


def _communication(path: str) -> Found:
    file = read_collectives(path)
    rows = []
    for step in file.steps:
        total_s = step.communication_s + step.wait_s
        rows.append(
            (step.number, step.communication_s, step.wait_s, step.wait_s / total_s if total_s else None)
        )
    return _columns("step communication_s wait_s wait_share", rows, file.notes)


def _links(path: str) -> Found:
    """The bandwidth is bytes / time. The file's own figure is the sum over the single operators."""
    file = read_collectives(path)
    rows = [
        (step.number, *link[:5], link.bytes / link.total_s / 1e9 if link.total_s else None, link.wait_s)
        for step in file.steps
        for link in step.links
    ]
    return _columns("step source destination type total_s bytes bandwidth_gbps wait_s", rows, file.notes)


def _communication_operators(path: str) -> Found:
    file = read_collectives(path)
    rows = [(step.number, *op) for step in file.steps for op in step.operators]
    return _columns("step operator communication_s wait_s", rows, file.notes)


def _getnext(folder: RankFolder, kind: str) -> Found:
    file = read_getnext(folder.raw, kind, folder.paths[kind])
    rows = [(call.node, call.start_s, call.end_s - call.start_s, call.level) for call in file.calls]
    return _columns("node start_s total_s level", rows, file.notes)


#: The makers of tables, by the kind of the rank's file.
Reader = Callable[[RankFolder, str], Found]


def _of_file(read: Callable[[str], Found]) -> Reader:
    """A reader for what needs that file only."""
    return lambda folder, kind: read(folder.paths[kind])


#: Name, kind of the file, and what reads it, in the order in which they are listed.
_TABLES: list[tuple[str, str, Reader]] = [
    ("steps", "step_trace", _of_file(_steps)),
    ("collectives", "step_trace", _of_file(_collectives)),
    ("host_queue", "device_queue", _of_file(_batches)),
    ("batches", "dataset_iterator", _of_file(_batches)),
    *(("getnext", f"getnext_{source}", _getnext) for source in ("ascend", "gpu", "raw")),
    ("aicore_types", "aicore_types", _of_file(_aicore_types)),
    ("aicore_operators", "aicore_details", _aicore_operators),
    ("aicpu_operators", "aicpu", _of_file(lambda path: _csv(path, _AICPU))),
    ("gpu_types", "gpu_types", _of_file(_csv)),
    ("gpu_operators", "gpu_details", _of_file(_csv)),
    ("gpu_activity", "gpu_activity", _of_file(_csv)),
    ("cpu_types", "cpu_types", _of_file(_csv)),
    ("cpu_operators", "cpu_details", _of_file(_csv)),
    ("memory", "memory_summary", _of_file(_figures)),
    ("memory_curve", "memory_details", _of_file(_memory_curve)),
    ("memory_breakdown", "memory_details", _of_file(_memory_breakdown)),
    ("flops", "flops_summary", _of_file(_figures)),
    ("parallel_steps", "cluster", _of_file(_parallel_steps)),
    ("communication", "collectives", _of_file(_communication)),
    ("links", "collectives", _of_file(_links)),
    ("communication_operators", "collectives", _of_file(_communication_operators)),
    ("dataset", "dataset", _of_file(lambda path: _csv(path, _DATASET))),
    ("host_info", "host_info", _of_file(_csv)),
]


def table_names(folder: ProfilerFolder, rank: int) -> list[str]:
    """Of the tables that the rank's files make; opens no file."""
    paths = folder.ranks[rank].paths if rank in folder.ranks else {}
    names = dict.fromkeys(name for name, kind, _ in _TABLES if kind in paths)
    jobs = [one for one in folder.ranks.values() if not _OF_JOBS.isdisjoint(one.paths)]
    return [*names, _RANKS] if paths and len(jobs) > 1 else [*names]


def read_table(folder: ProfilerFolder, rank: int, name: str) -> Found:
    """Raises UsageError for a name that is not among `table_names`, FormatError for a damaged file."""
    names = table_names(folder, rank)
    if name not in names:
        raise UsageError(f"no table {name}; the files make {', '.join(names) or 'none'}")
    if name == _RANKS:
        return ranks_table(folder)
    own = folder.ranks[rank]
    kind, read = next((kind, read) for each, kind, read in _TABLES if each == name and kind in own.paths)
    return read(own, kind)


def queried(found: Found, search: str, group_by: str, sort_by: str) -> Table:
    """See `Tables.query`."""
    columns, notes = found
    columns = {name: _numeric(values) for name, values in columns.items()}
    if search:
        texts = [values for values in columns.values() if _is_text(values)]
        rows = range(len(next(iter(columns.values()), [])))
        hits = [row for row in rows if any(search.lower() in values[row].lower() for values in texts)]
        columns = _taken(columns, hits)
    if group_by:
        columns = _grouped(columns, group_by)
    if sort_by:
        values = _column(columns, sort_by)
        keys = values if _is_text(values) else [math.inf if math.isnan(value) else -value for value in values]
        columns = _taken(columns, sorted(range(len(keys)), key=keys.__getitem__))
    return Table(_core.Columns.of(list(columns.items()), notes))


def _is_text(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[0], str)


def _numeric(values: list[Any]) -> list[Any]:
    return [math.nan if value is None else float(value) for value in values] if None in values else values


def _taken(columns: Columns, rows: list[int]) -> Columns:
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def _column(columns: Columns, name: str) -> list[Any]:
    if name not in columns:
        raise UsageError(f"no column {name}; there are: {', '.join(columns)}")
    return columns[name]


def _grouped(columns: Columns, name: str) -> Columns:
    groups: dict[str, list[int]] = {}
    for row, key in enumerate(_column(columns, name)):
        groups.setdefault(_key(key), []).append(row)
    made: Columns = {name: list(groups), "rows": [len(rows) for rows in groups.values()]}
    for other, values in columns.items():
        adds_up = other in _ADDS_UP or other.endswith(("total_time_s", "occurrences"))
        if adds_up and other != name and not _is_text(values):
            known = [0.0 if math.isnan(value) else float(value) for value in values]
            made[other] = [sum(known[row] for row in rows) for rows in groups.values()]
    return made


def _key(value: Any) -> str:
    """Whole numbers without a fraction, others with six digits behind the point."""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if math.isfinite(value) and value == int(value) else f"{value:f}"
