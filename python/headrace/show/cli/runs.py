"""``headrace ls FOLDER``: the runs of a folder beside each other."""

from __future__ import annotations

import click

from headrace.errors import UsageError
from headrace.show.cli import _shared


@click.command("ls")
@click.argument("folder", type=click.Path(), default=_shared.RUNS)
@click.option("--sort", metavar="COLUMN", help="Order by a column; -COLUMN: the largest first.")
@click.option("--where", multiple=True, metavar="NAME=VALUE", help="Only runs with that; may be repeated.")
@_shared.formats("text", "csv", "json")
@_shared.output
def runs(folder: str, sort: str | None, where: tuple[str, ...], format_: str, output: str | None) -> None:
    """List the runs at any depth below FOLDER, and say which parameter their step depends on.

    A parameter of a loader or script is the column p.NAME; --sort and --where take it without "p.".
    """
    from headrace.results.runs_table import runs_of

    found = runs_of(folder)
    table = found.only(dict(_split(one) for one in where)).sorted_by(sort).table()
    _shared.write_table(format_, table, output, max_rows=None)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--where takes NAME=VALUE, not {text!r}")
    return name, value
