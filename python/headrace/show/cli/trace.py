"""``headrace trace PATH...``."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace import _core
from headrace.errors import FormatError
from headrace.results.runs_folder import is_run
from headrace.show.cli import _options
from headrace.show.cli._output import reading, write

if TYPE_CHECKING:
    from headrace.traces.memory import MemorySnapshot
    from headrace.traces.table import Table
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
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "csv", "html"]),
    default="text",
    show_default=True,
    help="Of a table; html: the page of a memory snapshot.",
)
@click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
@click.option("--describe", is_flag=True, help="The table's columns: units, and how to read them.")
@_options.fp_point
@_options.bp_point
def trace(
    paths: tuple[str, ...],
    rank: int | None,
    name: str | None,
    format_: str,
    output: str | None,
    describe: bool,
    fp_point: str | None,
    bp_point: str | None,
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
    points = {"fp_point": fp_point, "bp_point": bp_point} if name == _STEP_TRACE else {}
    loaded = None if is_snapshot else _load(list(paths), rank)
    if name is None:
        text = _memory(paths[0], format_, width) if loaded is None else _summary(loaded, width)
    else:
        table = _snapshot(paths[0]).table(name) if loaded is None else loaded.table(name, **points)
        if loaded is not None and name in _OF_ONE_RANK and len(loaded) > 1:
            click.echo(f"note: rank {loaded.ranks[0]} only; --rank N for another", err=True)
        text = _in_format(table.describe() if describe else table, format_, width, on_terminal)
        if name == "advice" and format_ == "text" and not describe:
            from headrace.traces.summary import advice_text

            text = advice_text(table, width) + "\n"
    write(text, output)


def _summary(loaded: Trace, width: int) -> str:
    from headrace.results.sentences import input_of
    from headrace.traces.summary import summary

    return summary(loaded, width, input_of(loaded)) + "\n"


def _snapshot(path: str) -> MemorySnapshot:
    from headrace.traces.memory import MemorySnapshot

    return MemorySnapshot.load(path)


def _memory(path: str, format_: str, width: int) -> str:
    from headrace.traces.memory_summary import memory_summary

    snapshot = _snapshot(path)
    return snapshot.to_html() if format_ == "html" else memory_summary(snapshot, width) + "\n"


def _in_format(table: Table, format_: str, width: int, on_terminal: bool) -> str:
    if format_ == "text":
        return table.to_text(width, 30 if on_terminal else None) + "\n"
    for note in table.notes:
        click.echo(f"note: {note}", err=True)
    return table.to_json(indent=1) + "\n" if format_ == "json" else table.to_csv()


def _load(paths: list[str], rank: int | None) -> Trace:
    from headrace.traces.trace import Trace

    try:
        with reading("traces", "MB") as progress:
            loaded = Trace.load(paths, progress=progress)
    except FormatError:
        if len(paths) > 1 or not Path(paths[0]).is_dir() or not is_run(Path(paths[0])):
            raise
        report = f"headrace report {shlex.quote(paths[0])}"
        raise click.UsageError(f"{paths[0]} is the folder of a run, without traces: {report}") from None
    return loaded if rank is None else loaded.rank(rank)
