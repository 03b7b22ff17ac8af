"""Options and output that several commands have."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from headrace.traces.table import Table

#: The folder of runs that name none, of `hr.wrap` and `headrace run`.
RUNS = "headrace-runs"

output = click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
fp_point = click.option(
    "--fp-point",
    metavar="NAME",
    help="Forward begins with the first work whose name, or a range around its launch, contains NAME "
    "(default: $FP_POINT, else it is found).",
)
bp_point = click.option(
    "--bp-point",
    metavar="NAME",
    help="Backward ends with the last such work (default: $BP_POINT, else it is found).",
)


def formats(*names: str, says: str | None = None) -> Callable[[Any], Any]:
    """The option for the format of the output; the first one is the default."""
    choice = click.Choice(names)
    return click.option("--format", "format_", type=choice, default=names[0], show_default=True, help=says)


def summary_options(what: str) -> Callable[[Any], Any]:
    """Options for reading many files, and for keeping their summaries. what: "ranks", "jobs"."""
    engine = click.option(
        "--engine",
        metavar="local|ray|dask|mpi|MODULE:EXECUTOR",
        default="local",
        show_default=True,
        help=f"Where {what} are read.",
    )
    cache = click.option(
        "--cache",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help=f"Where summaries of {what} are kept (default: the user's cache folder).",
    )
    return lambda command: engine(cache(command))


# --- output ---


def write(text: str, output: str | None) -> None:
    """Into the file ``output``; None: to stdout."""
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def write_as(format_: str, result: Any, output: str | None, **of_text: Any) -> None:
    """A result as text, JSON or a page; see `write`. of_text: further arguments of its `to_text`."""
    if format_ == "text":
        width = min(120, shutil.get_terminal_size((100, 24)).columns) if output is None else 100
        write(result.to_text(width=width, **of_text).rstrip("\n") + "\n", output)
    else:
        write(result.to_html() if format_ == "html" else result.to_json() + "\n", output)


def has_color(output: str | None) -> bool:
    return output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


def write_table(format_: str, table: Table, output: str | None, **of_text: Any) -> None:
    """As wide as the terminal; a file or a pipe gets it whole. of_text: see `write_as`."""
    if format_ == "text":
        width = shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else sys.maxsize
        write(table.to_text(**{"width": width, **of_text}) + "\n", output)
    elif format_ == "csv":
        write(table.to_csv(), output)
    else:
        write((table.to_json(indent=1) if format_ == "json" else table._repr_html_()) + "\n", output)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], object] | None]:
    """Called with a text, it shows that on one line of the terminal; None: there is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    try:
        yield lambda text: click.echo(f"\r\033[K{text}", nl=False, err=True)
    finally:
        click.echo("\r\033[K", nl=False, err=True)


@contextlib.contextmanager
def reading(what: str, unit: str = "") -> Iterator[Callable[[int, int], object] | None]:
    """Called with how many of how many were read, it shows that on a terminal; None: there is none.

    unit: "MB" of bytes.
    """
    size = 1_000_000 if unit else 1
    with progress() as show:
        yield show and (lambda done, of: show(f"reading {what}: {done // size:,} of {of // size:,} {unit}"))
