"""One screen about device traces: what `headrace trace` prints."""

from __future__ import annotations

import math
import statistics
import textwrap
from typing import Any

from headrace.common.plain import plain
from headrace.traces.table import Table
from headrace.traces.table_text import counted, memory_size, seconds
from headrace.traces.trace import Trace

#: Rows of a list that still fit on one screen.
_SHOWN = 8
#: Findings of the advice, each of which takes a few lines.
_ADVISED = 4


#: The mean step may differ from the median by this share of it; beyond, both are said.
_APART = 0.1


def summary(trace: Trace, width: int = 100, on_input: str = "") -> str:
    """Head, time, steps, what the device waited for, kernels; of several ranks, how far they differ.

    on_input: what is known of the input, which comes first.
    """
    parts = [_head(trace), on_input]
    if not len(trace) and trace.tables():
        return "\n\n".join(part for part in [*parts, *_written(trace, width), _advice(trace, width)] if part)
    if not len(trace):
        return "\n\n".join([*parts, _cluster(trace, width)])
    if trace.are_runs:
        ran = ((rank, list(trace.rank(rank).time_breakdown().rows())) for rank in trace.ranks)
        runs = [f"run {rank}: {_time(trace.rank(rank), rows)}" for rank, rows in ran if rows]
        return "\n\n".join(part for part in [*parts, "\n".join(runs), _advice(trace, width)] if part)
    time = trace.time_breakdown(per_device=True)
    busy = list(time.rows())
    parts.append(_time(trace, busy) if busy else "\n".join(time.notes[:_SHOWN]))
    parts.append(_steps(trace))
    if busy:
        parts += [_waits(trace), _kernels(trace, width)]
    else:
        parts.append(_host(trace, width))
    parts.append(_memory(trace))
    if len(busy) > 1:
        parts.append(_ranks(trace, busy))
    parts.append(_advice(trace, width))
    return "\n\n".join(part for part in parts if part)


def _advice(trace: Trace, width: int) -> str:
    """The findings of `Trace.advice` that call for something, the most severe first."""
    rows = list(trace.advice().rows())
    found = [row for row in rows if row["severity"] in ("high", "medium")]
    if not found:
        return ""
    lines = ["advice"]
    for row in found[:_ADVISED]:
        lines += _wrapped(f"  {row['severity']:<6}  ", _sentence(row), width)
    unchecked = sum(row["severity"] == "not checked" for row in rows)
    more = [f"{len(found) - _ADVISED} more"] if len(found) > _ADVISED else []
    more += [f"{unchecked} rules had nothing to look at"] if unchecked else []
    if more:
        lines.append(f"  {' and '.join(more)}: --table advice")
    return "\n".join(lines)


def _sentence(row: dict[str, Any]) -> str:
    figures = f" ({row['figures']})" if row["figures"] else ""
    return f"{row['says']}{figures}" + (f": {row['cure']}" if row["cure"] else "")


def _wrapped(first: str, sentence: str, width: int) -> list[str]:
    said = textwrap.wrap(sentence, max(width - len(first), 20)) or [""]
    return [first + said[0], *(" " * len(first) + line for line in said[1:])]


def advice_text(table: Table, width: int) -> str:
    """The table of advice with a paragraph for each rule: its sentences are too long for columns."""
    rows = list(table.rows())
    wide = max((len(row["rule"]) for row in rows), default=0)
    lines = []
    for row in rows:
        said = _sentence(row).removeprefix(f"{row['severity']}: ")
        lines += _wrapped(f"{row['severity']:<11}  {row['rule']:<{wide}}  ", said, width)
    return "\n".join([*lines, *(f"note: {note}" for note in table.notes)])


def _head(trace: Trace) -> str:
    lines = [repr(trace).strip("<>").removeprefix("headrace.")]
    if len(trace):
        lines[0] += f", {seconds(trace.length_s)} long"
    lines += [f"note: {note}" for note in trace.notes[:_SHOWN]]
    more = len(trace.notes) - _SHOWN
    return "\n".join(lines + ([f"note: {more} more"] if more > 0 else []))


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def _mean(rows: list[dict[str, Any]], column: str) -> float:
    return float(sum(row[column] for row in rows) / len(rows))


def _time(trace: Trace, rows: list[dict[str, Any]]) -> str:
    span = _mean(rows, "kernel_span_s")
    of = "the device" if len(rows) == 1 else f"a device (mean of {len(rows)})"
    words = [("computing", "compute_s"), ("other work only", "non_compute_s"), ("idle", "idle_s")]
    line = ", ".join(f"{_percent(_mean(rows, column), span)} {what}" for what, column in words)
    line = f"{of}: {line}, of {seconds(span)}"
    if span < 0.5 * trace.length_s:
        line += f", which is {_percent(span, trace.length_s)} of the trace"
    told = list(trace.overlap().rows())
    overlaps = [row["overlap_pct"] for row in told if row["communication_s"] > 0]
    if overlaps:
        communicating = _percent(sum(row["communication_s"] for row in told) / len(told), span)
        line += (
            f"\n  {communicating} communicating, of which {sum(overlaps) / len(overlaps):.1f} % "
            "is hidden by computation"
        )
    return line


def _steps(trace: Trace) -> str:
    breakdown = trace.step_breakdown()
    steps = list(breakdown.steps.rows())
    if not steps:
        return "\n".join(breakdown.steps.notes)
    shares: dict[str, list[float]] = {}
    for row in breakdown.average.rows():
        shares.setdefault(row["role"], []).append(row["share_pct"])
    means = {role: sum(values) / len(values) for role, values in shares.items()}
    line = ", ".join(f"{mean:.1f} % {role.replace('_', ' ')}" for role, mean in means.items() if mean >= 0.05)
    counted = len({row["step"] for row in steps})
    takes, mean = statistics.median(row["total_s"] for row in steps), _mean(steps, "total_s")
    # Steps that compile, or that a pause falls into, are no measure of the others.
    apart = f" (the median; {seconds(mean)} on average)" if abs(mean - takes) > _APART * takes else ""
    lines = [f"a step ({counted} of them) takes {seconds(takes)}{apart}: {line}"]
    lines += [f"  {note}" for note in breakdown.steps.notes[:3]]
    return "\n".join(lines)


def _waits(trace: Trace) -> str:
    """The reasons of the stream that the host launches most on."""
    rows = list(trace.idle_breakdown().idle.rows())
    streams: dict[tuple[int, int, int], dict[str, float]] = {}
    for row in rows:
        key = (row["rank"], row["device"], row["stream"])
        streams.setdefault(key, {})[row["category"]] = row["idle_s"]
    if not streams:
        return ""
    queues = {(row["rank"], row["device"], row["stream"]): row for row in trace.queue_length().summary.rows()}
    key = max(queues, key=lambda k: queues[k]["launches"], default=next(iter(streams)))
    waits = streams.get(key, {})
    whole = sum(waits.values())
    reasons = ", ".join(f"{_percent(idle, whole)} {name}" for name, idle in waits.items() if idle > 0)
    waited = f"waited {seconds(whole)}: {reasons}" if reasons else "never waited"
    where = f"rank {key[0]}, " if len(trace) > 1 else ""
    if len({device for _, device, _ in streams}) > 1:
        where += f"device {key[1]}, "
    lines = [f"{where}stream {key[2]} (most launches) {waited}"]
    queue = queues.get(key)
    if queue is not None and not math.isnan(queue["mean"]):
        lines.append(f"  its launch queue held {queue['mean']:.3g} on average, {queue['max']:.0f} at most")
    return "\n".join(lines)


def _kernels(trace: Trace, width: int) -> str:
    table = trace.kernels()
    rows: dict[str, list[float]] = {}
    for row in table.rows():
        entry = rows.setdefault(row["name"], [0.0, 0])
        entry[0] += row["total_s"]
        entry[1] += row["calls"]
    return _longest("kernels and copies", rows, width)


def _memory(trace: Trace) -> str:
    """The highest peak among the devices, or the host's; nothing without memory events."""
    rows = sorted(
        trace.memory().rows(), key=lambda row: (row["device_type"] > 0, row["peak_allocated_bytes"])
    )
    if not rows:
        return ""
    row = rows[-1]
    where = f"device {row['device']}" if row["device_type"] > 0 else "the host"
    where = f"rank {row['rank']}, {where}" if len(trace) > 1 else where
    line = f"memory of {where}: peak {memory_size(row['peak_allocated_bytes'])}"
    line += f" in step {row['step']}" if row["step"] >= 0 else ""
    return line + (f", by {plain(row['operator'])}" if row["operator"] else "")


def _host(trace: Trace, width: int) -> str:
    """The summary of a trace without a device: operators, or calls with a name and a duration."""
    rows: dict[str, list[float]] = {}
    for row in trace.operators().rows():
        entry = rows.setdefault(row["name"], [0.0, 0])
        entry[0] += row["host_self_s"]
        entry[1] += row["calls"]
    what = "operators of the host, by their own time"
    if sum(total for total, _ in rows.values()) > trace.length_s * len(trace):
        what += " on all threads"
    if not rows:
        what = "no category of PyTorch's profiler; ranges, inner ones included"
        for rank in trace.ranks:
            events = trace.events(rank).to_dict()
            for name, phase, duration_ns in zip(
                events["name"], events["phase"], events["duration_ns"], strict=True
            ):
                if phase == ord("X"):
                    entry = rows.setdefault(name, [0.0, 0])
                    entry[0] += duration_ns * 1e-9
                    entry[1] += 1
    return _longest(what, rows, width) if rows else ""


def _cluster(trace: Trace, width: int) -> str:
    """The summary of a job: its ranks' steps, and who makes the others wait."""
    tables = trace.cluster()
    lines = [tables.step_time.to_text(width, _SHOWN * 3)]
    for row in tables.gaps.rows():
        shown = seconds(row["gap"]) if row["unit"] == "s" else f"{row['gap']:.3g} {row['unit']}"
        line = f"{row['quantity'].replace('_', ' ')} differs by {shown} ({100 * row['gap_share']:.1f} %)"
        if row["slow"]:
            line += f": rank {row['slow_rank']} is the slow one"
        lines.append(line)
    votes = [row for row in tables.slow_ranks.rows() if row["slow_operations"]]
    lines += [
        f"rank {row['rank']} came last to {row['slow_operations']} of {row['operations']} collectives"
        for row in votes[:_SHOWN]
    ]
    return "\n".join(lines)


#: Tables of a profiler that say most at a glance.
_FIRST = ("step_trace_time", "op_statistic")


def _written(trace: Trace, width: int) -> list[str]:
    """The summary of a profile without its timeline: the tables that the profiler wrote."""
    there = trace.tables()
    parts = [f"{name}:\n{trace.table(name).to_text(width, _SHOWN)}" for name in _FIRST if name in there]
    return [*parts, f"tables of the profiler (--table NAME): {', '.join(there)}"]


def _longest(what: str, rows: dict[str, list[float]], width: int) -> str:
    """`rows`: seconds and calls by name."""
    whole = sum(total for total, _ in rows.values())
    longest = sorted(rows.items(), key=lambda item: -item[1][0])[:_SHOWN]
    lines = [f"{what}: {counted(len(rows), 'name')}, {seconds(whole)} in all"]
    for name, (total, calls) in longest:
        head = f"  {_percent(total, whole):>7}  {seconds(total):>9}  {calls:>7} x  "
        lines.append(head + _shortened(name, width - len(head)))
    return "\n".join(lines)


def _shortened(name: str, width: int) -> str:
    name = plain(name)
    return name if len(name) <= width else name[: width - 1] + "~"


def _idle_pct(row: dict[str, Any]) -> float:
    return -1.0 if math.isnan(row["idle_pct"]) else float(row["idle_pct"])


def _ranks(trace: Trace, rows: list[dict[str, Any]]) -> str:
    several = len(rows) > len({row["rank"] for row in rows})
    rows = sorted(rows, key=_idle_pct, reverse=True)
    lines = [f"{'devices' if several else 'ranks'} by idle time:"]
    lines += [
        f"  rank {row['rank']}{', device ' + str(row['device']) if several else ''}:"
        f" {row['idle_pct']:.1f} % idle, {row['compute_pct']:.1f} % computing"
        for row in rows[:_SHOWN]
    ]
    if len(rows) > _SHOWN:
        lines.append(f"  ... {len(rows) - _SHOWN} more (--table time_breakdown)")
    last = next(iter(trace.stragglers(candidates=1).rows()), None)
    if last is not None and last["candidate"] and 2 * last["late_steps"] > last["steps"]:
        lines.append(
            f"rank {last['rank']} comes last to its collectives"
            f" in {last['late_steps']} of {last['steps']} steps"
        )
    return "\n".join(lines)
