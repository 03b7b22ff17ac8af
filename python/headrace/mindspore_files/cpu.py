"""The CPU time of the machine, the process and each operator: minddata_cpu_utilization_<rank>.json.

The writer's arrays have different lengths, by version and by entry. A `Series` has one value for each of its
own time stamps, so that what uses it does not depend on the version:

    N time stamps.  N values: value i is of the time up to stamp i, and the first, taken before anything had
    passed, is left out.   N - 1 values: value i is of the time up to stamp i + 1.   2 N values: every second
    one is a repeat; N values beside a 2 N entry of the same group: the first half of such a series.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from headrace.errors import FormatError
from headrace.mindspore_files.texts import items, member, numbers, read_json, whole

#: More is damage.
_MAX_CORES = 1 << 20
_MEGABYTE = 1 << 20


@dataclass
class Series:
    """Percent, 100 is one core: value i is of the time from the stamp before ``end_ms[i]`` up to it."""

    end_ms: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def mean(self, span_ms: tuple[float, float] | None = None) -> float | None:
        """The mean of the values in the span, where it has some, else of all; None without values."""
        begin, end = span_ms or (0, 0)
        inside = [v for at, v in zip(self.end_ms, self.values, strict=True) if begin < at <= end]
        found = inside or self.values
        return sum(found) / len(found) if found else None


@dataclass
class Cpu:
    #: 0: unknown.
    cores: int
    stamps_ms: list[float]
    idle: Series = field(default_factory=Series)
    io: Series = field(default_factory=Series)
    #: User and system time, without worker processes.
    process: Series = field(default_factory=Series)
    #: By the operator's id: threads and worker processes together.
    operators: dict[int, Series] = field(default_factory=dict)
    resident_bytes: float | None = None
    #: As the file has it, for MindInsight's rule.
    raw_idle: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def series(self, values: list[float], what: str, doubled: bool = False) -> Series:
        """An array of the file. If no version writes its length, it is left out, and noted."""
        count = len(values)
        if not values or not self.stamps_ms:
            return Series()
        if doubled and count > 1:
            values = values[2::2]
        elif count == len(self.stamps_ms):
            values = values[1:]
        elif count + 1 != len(self.stamps_ms):
            if count > 1:
                of = f"{count} values for {len(self.stamps_ms)} time stamps"
                self.notes.append(f"{what} has {of}; it is left out")
            return Series()
        pairs = zip(self.stamps_ms[1:], values, strict=False)
        known = [(at, value) for at, value in pairs if value >= 0]  # not NaN
        return Series([at for at, _ in known], [value for _, value in known])


def read_cpu(path: str) -> Cpu:
    document = read_json(path)
    stamps = numbers(member(document, "time_stamp"))
    if not stamps:
        raise FormatError(path, 0, 'a list "time_stamp" beside the CPU times')
    cores = whole(member(document, "cpu_processor_num")) or 0
    cpu = Cpu(cores if 0 < cores <= _MAX_CORES else 0, stamps)
    if not all(before <= after for before, after in pairwise([stamps[0], *stamps])):  # so for NaN
        cpu.notes.append("the CPU file's time stamps do not grow; its CPU times are left out")
        cpu.stamps_ms = []
    device = member(document, "device_info")
    arrays = [
        numbers(member(device, name))
        for name in ("idle_utilization", "io_utilization", "runnable_process", "context_switch_count")
    ]
    # If one entry has double length, the others have it too.
    doubled = any(len(each) == 2 * len(stamps) for each in arrays)
    cpu.idle = cpu.series(arrays[0], "the machine's idle time", doubled)
    cpu.io = cpu.series(arrays[1], "the machine's I/O wait", doubled)
    cpu.raw_idle = arrays[0]
    cpu.process = cpu.series(_both(member(document, "process_info")), "the process's CPU time")
    resident = numbers(member(document, "process_memory_info", "rss_mbytes"))
    if resident and resident[-1] >= 0:
        cpu.resident_bytes = resident[-1] * _MEGABYTE
    for entry in items(member(document, "op_info")):
        found, metrics = whole(member(entry, "op_id")), member(entry, "metrics")
        if found is not None and found >= 0 and metrics is not None:  # -1 is no operator
            cpu.operators.setdefault(found, cpu.series(_both(metrics), f"the CPU time of operator {found}"))
    return cpu


def _both(of: object) -> list[float]:
    """Sum of user and system time."""
    user, system = numbers(member(of, "user_utilization")), numbers(member(of, "sys_utilization"))
    return [sum(pair) for pair in zip(user, system, strict=False)]
