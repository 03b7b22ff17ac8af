"""``headrace trace PATH...``."""

from __future__ import annotations

import shlex
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace import _core
from headrace.common.plain import plain
from headrace.errors import FormatError
from headrace.results.runs_folder import is_run
from headrace.show.cli import _options

if TYPE_CHECKING:
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
@click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the page to FILE.")
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
    if output is not None and format_ != "html":
        raise click.UsageError("-o is for --format html")
    if name is None and format_ not in ("text", "html"):
        raise click.UsageError(f"--format {format_} needs --table NAME")
    if name is None and describe:
        raise click.UsageError("--describe needs --table NAME")
    if name != _STEP_TRACE and (fp_point is not None or bp_point is not None):
        raise click.UsageError(f"--fp-point and --bp-point need --table {_STEP_TRACE}")
    on_terminal = sys.stdout.isatty()
    width = min(shutil.get_terminal_size((100, 24)).columns, 160) if on_terminal else 100
    if is_snapshot:
        if rank is not None:
            raise click.UsageError("--rank is for traces; a memory snapshot has devices, a row each")
        _memory(paths[0], name, format_, output, describe, width)
        return
    loaded = _load_or_say_what_it_is(list(paths))
    if rank is not None:
        loaded = loaded.rank(rank)
    if name is None:
        from headrace.traces.summary import summary

        click.echo(summary(loaded, width, _input_of(loaded)))
        return
    points = {"fp_point": fp_point, "bp_point": bp_point} if name == _STEP_TRACE else {}
    table = loaded.table(name, **points)
    if name in _OF_ONE_RANK and len(loaded) > 1:
        click.echo(f"note: rank {loaded.ranks[0]} only; --rank N for another", err=True)
    if name == "advice" and format_ == "text" and not describe:
        from headrace.traces.summary import advice_text

        click.echo(advice_text(table, width))
        return
    _print(table, format_, describe, width)


def _memory(
    path: str, name: str | None, format_: str, output: str | None, describe: bool, width: int
) -> None:
    """The screen of a memory snapshot, its page, or one of its tables."""
    from headrace.traces.memory import MemorySnapshot
    from headrace.traces.memory_summary import memory_summary

    snapshot = MemorySnapshot.load(path)
    if format_ == "html":
        if output is None:
            click.echo(snapshot.to_html(), nl=False)
        else:
            snapshot.to_html(output)
    elif name is None:
        click.echo(memory_summary(snapshot, width))
    else:
        _print(snapshot.table(name), format_, describe, width)


def _print(table: Table, format_: str, describe: bool, width: int) -> None:
    if describe:
        table = table.describe()
    if format_ == "json":
        click.echo(table.to_json(indent=1))
    elif format_ == "csv":
        click.echo(table.to_csv(), nl=False)
    else:
        click.echo(table.to_text(width, 30 if sys.stdout.isatty() else None))
    if format_ != "text":
        for note in table.notes:
            click.echo(f"note: {note}", err=True)


def _input_of(loaded: Trace) -> str:
    """The verdict on the input that the trace shows, with the first change; "" where there is none."""
    from headrace.results import sentences
    from headrace.results.report import Report

    report = Report.of_trace(loaded)
    if report is None or report.diagnosis.kind == "undetermined":
        return ""
    lines = [f"the input, {plain(report.loader)}: {report.diagnosis}"]
    lines += [f"  {line}" for line in sentences.advice(report)[:1]]
    return "\n".join([*lines, f"  the whole report: headrace report {shlex.quote(loaded.files[0])}"])


def _load_or_say_what_it_is(paths: list[str]) -> Trace:
    try:
        return _load(paths)
    except FormatError:
        if len(paths) > 1 or not Path(paths[0]).is_dir() or not is_run(Path(paths[0])):
            raise
        report = f"headrace report {shlex.quote(paths[0])}"
        raise click.UsageError(f"{paths[0]} is the folder of a run, without traces: {report}") from None


def _load(paths: list[str]) -> Trace:
    """Reads with a progress bar where a person looks on."""
    from headrace.traces import files as _trace_files
    from headrace.traces.trace import Trace

    loader = _trace_files.loader(_trace_files.expand(paths), paths, None)
    if not sys.stderr.isatty() or loader.progress[1] < 20_000_000:
        return Trace.of_loader(loader)
    found: list[Any] = []
    failed: list[BaseException] = []

    def read() -> None:
        try:
            found.append(Trace.of_loader(loader))
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=read, name="headrace-reader", daemon=True)
    reader.start()
    with click.progressbar(length=loader.progress[1], label="reading", file=sys.stderr) as bar:
        shown = 0
        while reader.is_alive():
            reader.join(0.1)
            done = loader.progress[0]
            bar.update(done - shown)
            shown = done
    if failed:
        raise failed[0]
    loaded: Trace = found[0]
    return loaded
