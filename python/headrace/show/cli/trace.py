"""``headrace trace PATH...``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace import _core
from headrace.errors import FormatError
from headrace.results.runs_folder import is_run
from headrace.show.cli import _shared

if TYPE_CHECKING:
    from headrace.traces.trace import Trace

#: Tables of the first rank.
_OF_ONE_RANK = {"device_idle", "critical_path", "critical_path_summary"}
#: The one whose points can be named.
_STEP_TRACE = "step_trace"


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Only this rank.")
@click.option(
    "--table",
    "name",
    metavar="NAME",
    help="One table instead of the summary: of the analyses, or one that the profiler wrote. "
    "An unknown name lists them.",
)
@_shared.formats("text", "json", "csv", "html", says="Of a table; html: the page of a memory snapshot.")
@_shared.output
@click.option("--describe", is_flag=True, help="The table's columns: units, and how to read them.")
@_shared.fp_point
@_shared.bp_point
def trace(
    paths: tuple[str, ...],
    rank: int | None,
    name: str | None,
    format_: str,
    output: str | None,
    describe: bool,
    fp_point: str | None,
    bp_point: str | None,
    loaded: Trace | None = None,
) -> None:
    """Say what the device did, from a profiler's traces: files, folders or URLs.

    Of PyTorch, Nsight Systems, rocprofv3, JAX, TensorFlow, Perfetto and Ascend NPUs.

    A memory snapshot of PyTorch (snapshot.pickle) says who holds a device's memory, and why a request failed.
    """
    is_snapshot = len(paths) == 1 and _core.holds_pickle(paths[0])
    if format_ == "html" and (name is not None or not is_snapshot):
        raise click.UsageError("--format html is the page of one memory snapshot, without --table")
    if name is None and format_ not in ("text", "html"):
        raise click.UsageError(f"--format {format_} needs --table NAME")
    if name is None and describe:
        raise click.UsageError("--describe needs --table NAME")
    if name != _STEP_TRACE and (fp_point is not None or bp_point is not None):
        raise click.UsageError(f"--fp-point and --bp-point need --table {_STEP_TRACE}")
    if is_snapshot and rank is not None:
        raise click.UsageError("--rank is for traces; a memory snapshot has devices, a row each")
    on_terminal = output is None and sys.stdout.isatty()
    width = min(shutil.get_terminal_size((100, 24)).columns, 160) if on_terminal else 100
    read: Any = loaded
    if is_snapshot:
        from headrace.traces.memory import MemorySnapshot

        read = MemorySnapshot.load(paths[0])
    elif loaded is None:
        read = _load(list(paths))
    read = read if rank is None else read.rank(rank)
    if name is None:
        _shared.write(
            read.to_html() if format_ == "html" else _summary(read, is_snapshot, width) + "\n", output
        )
        return
    points = {"fp_point": fp_point, "bp_point": bp_point} if name == _STEP_TRACE else {}
    table = read.table(name, **points)
    if not is_snapshot and name in _OF_ONE_RANK and len(read) > 1:
        click.echo(f"note: rank {read.ranks[0]} only; --rank N for another", err=True)
    if name == "advice" and format_ == "text" and not describe:
        from headrace.traces.summary import advice_text

        _shared.write(advice_text(table, width) + "\n", output)
        return
    table = table.describe() if describe else table
    for note in () if format_ == "text" else table.notes:
        click.echo(f"note: {note}", err=True)
    _shared.write_table(format_, table, output, width=width, max_rows=30 if on_terminal else None)


def _summary(read: Any, is_snapshot: bool, width: int) -> str:
    if is_snapshot:
        from headrace.traces.memory_summary import memory_summary

        return memory_summary(read, width)
    from headrace.results.sentences import input_of
    from headrace.traces.summary import summary

    return summary(read, width, input_of(read))


def _load(paths: list[str]) -> Trace:
    from headrace.traces.trace import Trace

    try:
        with _shared.reading("traces", "MB") as progress:
            loaded = Trace.load(paths, progress=progress)
    except FormatError:
        if len(paths) > 1 or not Path(paths[0]).is_dir() or not is_run(Path(paths[0])):
            raise
        report = f"headrace report {shlex.quote(paths[0])}"
        raise click.UsageError(f"{paths[0]} is the folder of a run, without traces: {report}") from None
    return loaded
