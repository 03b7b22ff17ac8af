"""The sentences of a report, in one line each: for terminals, logs and other tools' pages."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from headrace.common.plain import plain
from headrace.results.report import Report
from headrace.traces.table_text import seconds

if TYPE_CHECKING:
    from headrace.results.figures import Profile
    from headrace.results.live_ranks import LoopLive
    from headrace.traces.trace import Trace


def verdict(report: Report) -> str:
    return str(report.diagnosis)


def cost(profile: Profile) -> str:
    """The step and its wait, in one line."""
    sink = profile.sink
    if not sink.steps:
        return "no step yet"
    return (
        f"step {seconds(sink.step_s)}, waits {share(sink.wait_share)} of the time, "
        f"starved {share(sink.starved_share)}, {count(sink.steps)} steps"
    )


def advice(report: Report) -> list[str]:
    lines = []
    for one in report.diagnosis.advice:
        gain = ""
        if one.predicted_step_s is not None:
            gain = f": step {seconds(one.predicted_step_s)}"
            if one.low is not None and one.high is not None:
                gain += f" ({seconds(one.low)} to {seconds(one.high)})"
        lines.append(plain(one.text) + gain)
    return lines


def risks(report: Report) -> list[str]:
    return [plain(f"{one.risk.replace('_', ' ')}: {one.says}") for one in report.diagnosis.risks]


def faults(report: Report) -> list[str]:
    """Faults of the data and the training; notes are left to the report."""
    return [plain(f"{one.kind}: {one.says}") for one in report.findings if one.severity == "fault"]


def live_lines(live: LoopLive | None) -> list[str]:
    """The exposed wait of the slowest rank, then stragglers and ranks that are stalled, silent or gone."""
    return [] if live is None else [line for line in (live.headline, *live.alerts) if line]


def input_of(trace: Trace) -> str:
    """The verdict on the input that a device's trace shows, with the first change; "" where there is none."""
    report = Report.of_trace(trace)
    if report is None or report.diagnosis.kind == "undetermined":
        return ""
    lines = [f"the input, {plain(report.loader)}: {report.diagnosis}"]
    lines += [f"  {line}" for line in advice(report)[:1]]
    return "\n".join([*lines, f"  the whole report: headrace report {shlex.quote(trace.files[0])}"])


def one_line(report: Report, live: LoopLive | None = None) -> str:
    """The state now, verdict, cost, the first advice, every risk and fault."""
    parts = [verdict(report), cost(report.profile), *advice(report)[:1], *risks(report), *faults(report)]
    return " | ".join([*live_lines(live), *parts])


def count(number: float) -> str:
    return f"{number:,.0f}"


def share(number: float) -> str:
    return f"{100 * number:.0f} %"
