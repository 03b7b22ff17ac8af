"""The operators of a dataset pipeline and the levels of their output queues.

They are in pipeline_profiling_<rank>.json, or in the table made of it (minddata_pipeline_raw_<rank>.csv). The
averages are in what MindSpore's own analysis wrote (minddata_pipeline_summary_<rank>.json or .csv).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace.errors import FormatError
from headrace.mindspore_files.texts import items, lines_of, member, number, read_json, rows_of, whole, wholes

#: A pipeline that a person wrote has tens.
_MAX_OPERATORS = 4096
#: Figures above these are damage.
_MOST_WORKERS, _LARGEST_QUEUE, _HIGHEST_LEVEL = 1 << 20, 1 << 40, (1 << 31) - 1
#: Rows in the queue of a worker, in the versions that give each worker a queue of its own.
_ROWS_PER_WORKER = 16
_INLINED = {"Repeat", "Take", "Skip", "Rename", "Zip", "Concat", "EpochCtrl", "Project"}
#: Types with one thread, or with none of their own.
_SINGLE = _INLINED | {"Barrier", "Shuffle", "DeviceQueue", "DataQueue", "ReceiveBridge"}


@dataclass(eq=False)
class Operator:
    """An operator of the pipeline. ``levels`` are the rows in its output queue at each sample."""

    id: int
    #: "MapOp"; old tables have "Map".
    type: str
    workers: int | None = None
    inputs: list[Operator] = field(default_factory=list)
    output: Operator | None = None
    #: Empty where the queue was never read; None: it has no queue, because it runs inside the operator above.
    levels: list[int] | None = None
    #: Rows; 0: the file does not say.
    capacity: int = 0

    @property
    def name(self) -> str:
        return f"{self.type}_{self.id}"

    @property
    def plain_type(self) -> str:
        return self.type[:-2] if len(self.type) > 2 and self.type.endswith("Op") else self.type

    @property
    def runs_in_parallel(self) -> bool:
        """Whether num_parallel_workers changes anything."""
        return self.plain_type not in _SINGLE

    @property
    def is_inlined(self) -> bool:
        """Whether it runs in the thread of the operator that takes from it."""
        if self.levels is not None or not self.inputs:
            return False
        return self.plain_type in _INLINED or (self.output is not None and self.kind != "transfer")

    @property
    def kind(self) -> str:
        """An operator kind of a profile; the type's own word if none fits."""
        kind = self.plain_type
        if kind in ("DeviceQueue", "DataQueue"):
            return "transfer"  # the thread that fills a device's queue
        if kind in ("Map", "Shuffle", "Filter"):
            return kind.lower()
        if "Batch" in kind:
            return "batch"
        return kind.lower() if self.inputs else "source"


@dataclass
class Pipeline:
    """Operators in the order of the file. They make a forest."""

    operators: list[Operator]
    notes: list[str]

    def in_data_flow(self) -> list[Operator]:
        """The operators of the largest tree, inputs first."""
        return max((_below(op) for op in self.operators if op.output is None), key=len)

    @property
    def has_queues_per_worker(self) -> bool:
        """Whether capacities and levels are sums over the workers, as in old versions."""
        queued = [op for op in self.operators if op.levels is not None]
        return any((op.workers or 1) > 1 for op in queued) and all(
            op.capacity == _ROWS_PER_WORKER * (op.workers or 0) for op in queued
        )

    @property
    def samples(self) -> int:
        """How often the queue that was read most often was read."""
        return max(len(op.levels or ()) for op in self.operators)


def _below(root: Operator) -> list[Operator]:
    order: list[Operator] = []
    waiting = [root]
    while waiting:
        order.append(waiting.pop())
        waiting += order[-1].inputs
    return order[::-1]


@dataclass
class Written:
    """The operator that MindSpore's own analysis named; "" where it named nothing."""

    pipeline: Pipeline
    bottleneck: str
    suggestion: str


def read_profiling(path: str) -> Pipeline:
    entries = member(read_json(path), "op_info")
    if not isinstance(entries, list):
        raise FormatError(path, 0, 'a list "op_info" of a pipeline\'s operators')
    operators = []
    for entry in entries:
        number_of, kind = whole(member(entry, "op_id")), member(entry, "op_type")
        queue = member(entry, "metrics", "output_queue")
        if number_of is None or not isinstance(kind, str):
            raise FormatError(path, 0, "an op_id and an op_type in each entry of op_info")
        op = _operator(number_of, kind, member(entry, "num_workers"))
        if queue is not None:
            op.capacity = _capacity(member(queue, "length"))
            op.levels = [_level(whole(size)) for size in items(member(queue, "size"))]
        operators.append((op, wholes(member(entry, "children"))))
    return _forest(path, operators)


def read_table(path: str) -> Pipeline:
    """Operators without a queue are not in the table, except the root."""
    kind = "a table of operators with the columns op_id and op_type"
    operators = []
    for at, row in enumerate(rows_of(path, "op_id op_type", kind)[1], 1):
        number_of, sizes = whole(row.get("op_id")), row.get("output_queue_size", "")
        if number_of is None:
            raise FormatError(path, 0, f"a number as op_id in row {at}")
        op = _operator(number_of, row.get("op_type", ""), row.get("num_workers"))
        op.capacity = _capacity(row.get("output_queue_length"))
        if sizes.startswith("[") or op.capacity > 0:
            op.levels = [_level(size) for size in wholes(sizes)]
        operators.append((op, wholes(row.get("children_id"))))
    return _forest(path, operators)


def read_summary(path: str) -> Written:
    """From the JSON file, or from the table, which has a name and its values in each line."""
    if path.endswith(".json"):
        document = read_json(path)
        document = document if isinstance(document, dict) else {}
        lists = {name: items(values) for name, values in document.items()}
    else:
        lists = {line[0]: line[1:] for line in lines_of(path)}

    def value(name: str, at: int) -> Any:
        return lists[name][at] if at < len(lists.get(name, ())) else None

    names = lists.get("op_names", [])
    if not names or len(names) != len(lists.get("op_ids", [])):
        raise FormatError(path, 0, "op_ids and op_names of a pipeline's operators")
    operators = []
    for at, name in enumerate(names):
        op = _operator(whole(value("op_ids", at)) or 0, f"{name}Op", value("num_workers", at))
        level, used = number(value("queue_average_size", at)), number(value("queue_utilization_pct", at)) or 0
        if level is not None and level >= 0:  # -1: it has no queue
            op.levels = []
            op.capacity = int(min(level / (used / 100), _LARGEST_QUEUE) + 0.5) if used > 0 else 0
        operators.append((op, wholes(value("children_ids", at))))
    texts = (value("bottleneck_warning", 0), value("bottleneck_suggestion", 0))
    return Written(_forest(path, operators), *(str(text or "") for text in texts))


def _operator(number_of: int, kind: str, workers: object) -> Operator:
    found = whole(workers)
    return Operator(number_of, kind, found if found is not None and 0 <= found <= _MOST_WORKERS else None)


def _capacity(value: object) -> int:
    found = whole(value) or 0
    return found if 0 < found <= _LARGEST_QUEUE else 0


def _level(value: int | None) -> int:
    return min(max(value or 0, 0), _HIGHEST_LEVEL)


def _forest(path: str, entries: list[tuple[Operator, list[int]]]) -> Pipeline:
    """Joins operators and the ids of their inputs. What keeps them from being a forest is left out, and
    noted: ids that come twice, inputs that are not there, a second output, a circle."""
    if not 0 < len(entries) <= _MAX_OPERATORS:
        raise FormatError(path, 0, f"between one and {_MAX_OPERATORS} operators")
    by_id: dict[int, Operator] = {}
    notes = [
        f"operator {op.id} is in the file twice; the first is shown"
        for op, _ in entries
        if by_id.setdefault(op.id, op) is not op
    ]
    for op, children in entries:
        for child in children if by_id[op.id] is op else ():
            taken = by_id.get(child)
            if taken is None:
                notes.append(f"operator {child}, an input of {op.name}, is not in the file")
            elif taken.output is not None or _passes_through(op, taken):
                notes.append(f"the inputs of {op.name} make no tree; one was left out")
            else:
                taken.output = op
                op.inputs.append(taken)
    return Pipeline(list(by_id.values()), notes)


def _passes_through(op: Operator | None, other: Operator) -> bool:
    """Whether the output of ``op`` ends up in ``other``, or whether both are the same."""
    while op is not None and op is not other:
        op = op.output
    return op is other
