"""A job's ranks as text: the verdict, what to do, the worst ranks, the distribution."""

from __future__ import annotations

import textwrap
from itertools import islice
from typing import TYPE_CHECKING

from headrace import _core
from headrace.cluster import _step_parts
from headrace.pages import plots, render
from headrace.traces.table_text import bandwidth, counted, figure, seconds, title

if TYPE_CHECKING:
    from headrace.cluster import Cluster
    from headrace.traces.table import Table

_WORST = 10
#: Rows of the page's table.
_MAX_ROWS = 200
_MAX_ERRORS = 10
_MAX_STAGES = 32
#: Columns of the stages' table and their headings.
_STAGE_PARTS = {
    "compute_s": "compute",
    "input_s": "input",
    "communication_s": "exposed",
    "bubble_s": "bubble",
}
_TITLES = {
    "slow_rank": "SLOW RANK",
    "uneven_stages": "UNEVEN STAGES",
    "pauses": "PAUSES",
    "slow_link": "SLOW LINK",
    "even": "NO SLOW RANK",
    "undetermined": "UNDETERMINED",
}


def text_of(cluster: Cluster, width: int) -> str:
    diagnosis = cluster.diagnosis
    gain = f"   whole job {diagnosis.speedup:.2f} x" if diagnosis.gain_share > 0 else ""
    lines = [
        f"{counted(len(cluster), 'rank')}{_quantiles(cluster)}",
        "",
        f"{_TITLES[diagnosis.verdict]}{gain}",
        *_wrapped(diagnosis.summary, width, "  "),
    ]
    if diagnosis.advice:
        lines.append("DO THIS")
        for number, text in enumerate(diagnosis.advice, 1):
            lines += _wrapped(text, width, f"  {number}  ")
    lines += [
        "",
        *_worst(cluster),
        *_distribution(cluster),
        *_step_shares(cluster, width),
        *_stages(cluster),
        *_what_ifs(cluster),
        *_links(cluster),
    ]
    lines += _absent(cluster, width)
    for note in cluster.notes:
        lines += _wrapped(note, width, "note: ")
    return "\n".join(lines).rstrip() + "\n"


def page_of(cluster: Cluster) -> str:
    """These words as a page."""
    diagnosis = cluster.diagnosis
    gain = f", the whole job {diagnosis.speedup:.2f} x as fast without it" if diagnosis.gain_share > 0 else ""
    first, _, rest = diagnosis.summary.partition(". ")
    heading = first.rstrip(".")
    title = f"{counted(len(cluster), 'rank')}{_quantiles(cluster)}"
    tables = [
        (heading, *_cells(part, most))
        for heading, part, most in (
            ("Stages", cluster.stages, _MAX_ROWS),
            *_what_if_table(cluster),
            ("Links", cluster.links, _WORST if not diagnosis.slow_links else 2 * _WORST),
        )
        if len(part)
    ]
    left = [f"{len(cluster) - _MAX_ROWS:,} more ranks are in the JSON"] if len(cluster) > _MAX_ROWS else []
    return render(
        "job",
        title=title,
        kind=_TITLES[diagnosis.verdict] + gain,
        is_bad=diagnosis.verdict not in ("even", "undetermined"),
        heading=heading,
        why=[rest] if rest else [],
        advice=diagnosis.advice,
        maps=_maps(cluster),
        tables=[*tables, ("Ranks", *_cells(cluster.ranks, _MAX_ROWS))],
        remarks=[
            *left,
            *_distribution(cluster),
            *_step_shares(cluster, 10_000),
            *_absent(cluster, 10_000),
            *cluster.notes,
        ],
    )


def _maps(cluster: Cluster) -> list[tuple[str, plots.HeatMap]]:
    """Ranks against steps: the latest ones, then all. Empty without common steps."""
    every = _core.heat_map(cluster._columns, [])
    rows = len(every[0])
    found = [("All ranks", plots.HeatMap(every, min(16.0, max(3.0, 480 / (rows + 1)))))] if rows else []
    worst = worst_of(cluster)
    if worst and len(worst) < rows:
        latest = plots.HeatMap(_core.heat_map(cluster._columns, worst), 16.0)
        found.insert(0, ("The latest ranks, step by step", latest))
    return found


def _cells(table: Table, most: int) -> tuple[list[str], list[list[str]]]:
    columns = [name if name in ("file", "kind") else f"#{title(name)}" for name in table.columns]
    return columns, [
        [_SLOW[value] if name == "slow" else figure(name, value) for name, value in row.items()]
        for row in islice(table.rows(), most)
    ]


def _step_shares(cluster: Cluster, width: int) -> list[str]:
    return _wrapped(_step_parts.said(cluster.step_shares), width, "")


def _stages(cluster: Cluster) -> list[str]:
    if not len(cluster.stages):
        return []
    lines = [
        "",
        f"{'stage':>8}  {'ranks':>10}  {'own time':>10}  {'beyond':>8}  "
        + "  ".join(f"{heading:>10}" for heading in _STAGE_PARTS.values()),
    ]
    for row in islice(cluster.stages.rows(), _MAX_STAGES):
        mark = "  long" if row["stage"] == cluster.diagnosis.long_stage else ""
        times = "  ".join(f"{_known(row[name]):>10}" for name in _STAGE_PARTS)
        lines.append(
            f"{row['stage']:>8,}  {row['ranks']:>10,}  {seconds(row['own_s']):>10}  "
            f"{row['beyond_share']:>+8.0%}  {times}{mark}"
        )
    return lines


def _known(value: float) -> str:
    return "-" if value != value else seconds(value)


def _what_if_table(cluster: Cluster) -> list[tuple[str, Table, int]]:
    """Empty if the job cannot be simulated."""
    job = cluster._simulated
    if isinstance(job, str):
        return []
    recorded, simulated = (sum(one) / len(one) for one in (job.recorded_s, job.simulated_s))
    heading = f"What if: a step of {seconds(recorded)}, simulated without launch delays {seconds(simulated)}"
    return [(heading, job.what_ifs, _WORST)]


def _what_ifs(cluster: Cluster) -> list[str]:
    lines = []
    for heading, table, most in _what_if_table(cluster):
        lines += ["", heading, f"{'step':>10}  {'job':>8}  without"]
        for row in islice(table.rows(), most):
            lines.append(f"{seconds(row['step_s']):>10}  {row['speedup']:>6.2f} x  {row['without']}")
    return lines


def _links(cluster: Cluster) -> list[str]:
    links = cluster.diagnosis.slow_links
    total = len(cluster.links)
    if not total:
        return []
    slow = sum(cluster.links.column("slow"))
    lines = [
        "",
        f"{counted(total, 'link')}, {f'{slow:,}' if slow else 'none'} slow beside others of their kind",
    ]
    if links:
        lines.append(f"{'ranks':>14}  {'bandwidth':>12}  {'usual':>12}  {'latency':>10}  {'costs':>10}  kind")
    for link in links[:_WORST]:
        latency = "-" if link.latency_s is None else seconds(link.latency_s)
        cells = [
            f"{_shortened(link.ranks):>14}",
            f"{_gbps(link.bandwidth_gbps):>12}",
            f"{_gbps(link.usual_gbps):>12}",
            f"{latency:>10}",
            f"{seconds(link.excess_s):>10}",
            link.kind,
        ]
        lines += ["  ".join(cells)]
    return lines


def _gbps(value: float | None) -> str:
    return "-" if value is None else bandwidth(value)


def _shortened(text: str) -> str:
    return text if len(text) <= 14 else f"{text[:11]}..."


def worst_of(cluster: Cluster) -> list[int]:
    """The ranks that come first in text and page."""
    return [row["rank"] for row in islice(cluster.ranks.rows(), _WORST) if row["steps"]]


def _wrapped(text: str, width: int, head: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False
    )


def _quantiles(cluster: Cluster) -> str:
    known = {name: value for name, value in cluster.step_quantiles.items() if value is not None}
    if not known:
        return ""
    return ", step " + ", ".join(f"{name} {seconds(value)}" for name, value in known.items())


def _worst(cluster: Cluster) -> list[str]:
    rows = [row for row in cluster.ranks.rows() if row["steps"]]
    if not rows:
        return []
    slow = {one.rank for one in cluster.diagnosis.slow}
    lines = [f"{'rank':>8}  {'late by':>10}  {'own time':>10}  {'late in':>8}  {'last in':>8}  {'input':>6}"]
    for row in rows[:_WORST]:
        mark = "  slow" if row["rank"] in slow else ""
        share = row["input_share"]
        lines.append(
            f"{row['rank']:>8,}  {seconds(row['late_s']):>10}  {seconds(row['own_s']):>10}  "
            f"{row['late_share']:>8.0%}  {row['last_share']:>8.0%}  "
            f"{'-' if share != share else f'{share:.0%}':>6}{mark}"
        )
    return lines


def _distribution(cluster: Cluster) -> list[str]:
    late = sorted(row["late_s"] for row in cluster.ranks.rows() if row["steps"])
    if len(late) <= _WORST:
        return []
    at = {name: late[min(len(late) - 1, int(share * len(late)))] for name, share in _SHARES}
    said = ", ".join(f"{name} {seconds(value)}" for name, value in at.items())
    return [f"late by, all {len(late):,} ranks: {said}"]


_SLOW = ("", "slow")
_SHARES = (("p1", 0.01), ("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99))


def _absent(cluster: Cluster, width: int) -> list[str]:
    lines: list[str] = []
    if cluster.missing:
        shown = ", ".join(f"{rank}" for rank in cluster.missing[:20])
        more = len(cluster.missing) - 20
        lines += _wrapped(f"{shown}{f' and {more:,} more' if more > 0 else ''}", width, "no file of rank: ")
    if cluster.running:
        lines.append(f"still running: {counted(len(cluster.running), 'rank')}")
    for name, why in cluster.read_errors[:_MAX_ERRORS]:
        lines += _wrapped(why, width, f"not read: {name}: ")
    if len(cluster.read_errors) > _MAX_ERRORS:
        lines.append(f"not read: {len(cluster.read_errors) - _MAX_ERRORS:,} more files")
    return lines
