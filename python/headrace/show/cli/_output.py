"""Output that several commands share, and where it goes."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click


def write(text: str, output: str | None) -> None:
    """Into the file ``output``; None: to stdout."""
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def text_width(output: str | None) -> int:
    """Columns of a text for a file, or for the terminal."""
    return min(120, shutil.get_terminal_size((100, 24)).columns) if output is None else 100


def table_width(output: str | None) -> int:
    """Columns of a table for the terminal; a file or a pipe gets it whole."""
    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else sys.maxsize


@contextlib.contextmanager
def reading(what: str, unit: str = "") -> Iterator[Callable[[int, int], None] | None]:
    """Called with how many of how many were read, it shows that on a terminal; None: there is none.

    unit: "MB" of bytes.
    """
    if not sys.stderr.isatty():
        yield None
        return

    def show(done: int, of: int) -> None:
        done, of = (one // 1_000_000 if unit else one for one in (done, of))
        click.echo(f"\r\033[Kreading {what}: {done:,} of {of:,} {unit}", nl=False, err=True)

    yield show
    click.echo("\r\033[K", nl=False, err=True)
