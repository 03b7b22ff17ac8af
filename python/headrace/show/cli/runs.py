"""``headrace runs FOLDER``: the runs of a folder beside each other."""

from __future__ import annotations

import click

from headrace.errors import UsageError
from headrace.show.cli._output import table_width


@click.command()
@click.argument("folder", type=click.Path(), default="headrace-runs")
@click.option("--sort", metavar="COLUMN", help="Order by a column; -COLUMN: the largest first.")
@click.option("--where", multiple=True, metavar="NAME=VALUE", help="Only runs with that; may be repeated.")
@click.option(
    "--format", "form", type=click.Choice(["text", "csv", "json"]), default="text", show_default=True
)
def runs(folder: str, sort: str | None, where: tuple[str, ...], form: str) -> None:
    """List the runs at any depth below FOLDER, and say which parameter their step depends on.

    A parameter of a loader or script is the column p.NAME; --sort and --where take it without "p.".
    """
    from headrace.results.runs_table import runs_of

    found = runs_of(folder)
    table = found.only(dict(_split(one) for one in where)).sorted_by(sort).table()
    if form == "csv":
        click.echo(table.to_csv(), nl=False)
    elif form == "json":
        click.echo(table.to_json(1))
    else:
        click.echo(table.to_text(width=table_width(None), max_rows=None))


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--where takes NAME=VALUE, not {text!r}")
    return name, value
