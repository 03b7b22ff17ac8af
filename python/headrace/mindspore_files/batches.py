"""When batches were taken: by the training loop, by the thread that feeds a device, and by the device itself.

MindData notes each batch in dataset_iterator_profiling_<rank>.txt, or in device_queue_profiling_<rank>.txt
where a thread feeds a device (sink mode). The device's GetNext calls are in minddata_aicpu_<rank>.txt
(Ascend, in us), minddata_getnext_profiling_<rank>.txt (GPU, in ns), or raw in DATA_PREPROCESS*.AICPUMI*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from headrace.errors import FormatError
from headrace.mindspore_files.texts import file_problem, number, read_text

#: A record of Ascend's raw files, behind "Node:"; its parts stand in any order.
_RAW_NODE = re.compile("Node:(GetNext[^,\0]*)([^\0]*)")
_FIGURES = {0: "wait_ms", 1: "push_ms", 2: "total_ms"}


class Call(NamedTuple):
    """A call of the training loop for a batch. ``ready``: the batch was there."""

    start_s: float
    wait_s: float
    ready: bool

    @property
    def end_s(self) -> float:
        return self.start_s + self.wait_s


@dataclass(slots=True)
class Batch:
    """Times are whole milliseconds, cut, not rounded. None: the file does not say."""

    number: int
    #: Until the pipeline gave it.
    wait_ms: int | None = None
    #: Until it was in the device's queue.
    push_ms: int | None = None
    total_ms: int | None = None
    #: On a clock that only grows.
    end_ms: int | None = None
    #: The host queue, from which it was taken.
    capacity: int | None = None
    level: int | None = None


@dataclass
class Batches:
    """In the order of their ends if all have one, else as in the file."""

    batches: list[Batch]
    notes: list[str]

    @property
    def span_ms(self) -> tuple[int, int] | None:
        """Ends of the first and of the last batch; None for the oldest files, which have levels only."""
        has_times = any(one.end_ms is not None and one.wait_ms is not None for one in self.batches)
        return (self.batches[0].end_ms or 0, self.batches[-1].end_ms or 0) if has_times else None

    @property
    def levels(self) -> list[int]:
        """The host queue's level at each fetch but the first, whose level was not measured."""
        return [one.level for one in self.batches[1:] if one.level is not None]

    def calls(self, in_sink_mode: bool, in_order: bool) -> list[Call]:
        """From the records of batches, on the clock of the CPU file. Empty without times.

        Only the ends are stamped; a wait was cut to whole milliseconds, so it began up to one earlier. In
        sink mode a batch was ready if the host queue had one before the fetch. Else it was ready if the wait
        is below a millisecond, or if the fetch before it left a batch in the host queue. The latter counts
        only ``in_order``, where the level counts batches and not those of several workers' queues.
        """
        calls = []
        left = 0
        for one in self.batches:
            if one.end_ms is None or one.wait_ms is None:
                continue
            if in_sink_mode and one.level is not None:
                ready = one.level > 0
            else:
                ready = one.wait_ms <= 0 or (not in_sink_mode and in_order and left > 0)
            left = one.level or 0
            # The end is that of the push where there is one.
            wait_s = one.wait_ms * 1e-3
            calls.append(Call((one.end_ms - (one.push_ms or 0)) * 1e-3 - wait_s, wait_s, ready))
        return calls


def read_batches(path: str) -> Batches:
    """Five whole numbers a line (type, extra, batch, value, time), four in the oldest form."""
    batches: list[Batch] = []
    unread: list[int] = []
    lines = read_text(path).splitlines()
    for at, line in enumerate(lines, 1):
        found = _figures_in(line)
        if len(found) not in (4, 5) or found[0] not in (0, 1) or min(found[2:4]) < 0:
            unread += [at] if line.strip() else []
            continue
        kind, extra, batch, value, *time = found
        what = "level" if kind == 1 else _FIGURES.get(extra, "")
        # A record that has the figure already is the batch before.
        if not batches or batches[-1].number != batch or (what and getattr(batches[-1], what) is not None):
            batches.append(Batch(batch))
        if what:
            setattr(batches[-1], what, value)
        if kind == 1 and extra > 0:
            batches[-1].capacity = extra
        if time:
            batches[-1].end_ms = time[0]
    if not batches:
        raise FormatError(path, 0, "lines of five whole numbers: type, extra, batch, value, time")
    notes = []
    if unread:
        of = f"{len(unread)} of {len(lines)} lines"
        notes.append(f"{of} of the batches' file could not be read (first: line {unread[0]})")
    if all(one.end_ms is not None for one in batches):
        batches.sort(key=lambda one: one.end_ms or 0)
    return Batches(batches, notes)


def _figures_in(line: str) -> list[int]:
    """Empty for a line of anything else. Quicker than `whole`, because a day has millions of lines."""
    try:
        return [int(word) for word in line.split()]
    except ValueError:
        return []


class GetNext(NamedTuple):
    """A call of the device, on its clock. ``level``: batches in the data queue, the one on the device."""

    node: str
    start_s: float
    end_s: float
    level: int


class GetNexts(NamedTuple):
    """In the order of their starts."""

    calls: list[GetNext]
    notes: list[str]

    def mean_s(self, is_empty: bool) -> float:
        """Time of the calls that found the data queue empty, or not empty, over all calls."""
        return sum(c.end_s - c.start_s for c in self.calls if (c.level == 0) == is_empty) / len(self.calls)


def read_getnext(slices: list[str], kind: str, path: str) -> GetNexts:
    """The calls in the file of the kind; getnext_raw lies in slices. Raises FormatError without calls."""
    found = GetNexts([], [])
    problem = None
    for each in slices if kind == "getnext_raw" else [path]:
        try:
            text = read_text(each)
            records = _raw_records(text) if kind == "getnext_raw" else _records(text)
            if not _add_calls(found, records, 1e-9 if kind == "getnext_gpu" else 1e-6):
                raise FormatError(each, 0, "records of GetNext with a start, an end and a level")
        except FormatError as error:  # noqa: PERF203 - each file on its own
            problem = problem or error
            found.notes.append(file_problem(each, error))
    if not found.calls and problem:
        raise problem
    found.calls.sort(key=lambda call: call.start_s)
    return found


def _add_calls(into: GetNexts, records: Iterable[list[str]], tick_s: float) -> int:
    """Adds records of node, start, end and level; returns how many were good."""
    unread = good = 0
    for node, *figures in records:
        start, end, level = ([number(each) for each in figures] + [None] * 3)[:3]
        if (
            len(figures) != 3
            or start is None
            or end is None
            or level is None
            or not 0 <= start <= end
            or level < 0
        ):
            unread += 1
            continue
        good += 1
        into.calls.append(GetNext(node, start * tick_s, end * tick_s, int(level)))
    if unread:
        into.notes.append(f"{unread} of the device's GetNext records could not be read")
    return good


def _records(text: str) -> Iterator[list[str]]:
    return (words for line in text.splitlines() if (words := line.split()) and words[0].startswith("GetNext"))


def _raw_records(text: str) -> Iterator[list[str]]:
    for node, rest in _RAW_NODE.findall(text):
        parts = dict(part.strip().split(":", 1) for part in rest.split(",") if ":" in part)
        yield [node, *(parts.get(name, "") for name in ("Run start", "Run end", "queue size"))]


def calls_on_device(getnext: GetNexts) -> list[Call]:
    """Calls of the operator that asked most often, because a graph may have several."""
    counts = Counter(sorted(call.node for call in getnext.calls))
    most = max(counts, key=lambda node: counts[node])
    return [Call(c.start_s, c.end_s - c.start_s, c.level > 0) for c in getnext.calls if c.node == most]
