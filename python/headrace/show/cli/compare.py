"""``headrace compare A B``: two runs side by side."""

from __future__ import annotations

import sys

import click

from headrace.predict.checks import both_loaded
from headrace.predict.comparison import Comparison, side_names
from headrace.show.cli._output import write


@click.command()
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--loader", metavar="NAME", help="Which loader (default: the one of A that trains).")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the lowest).")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
@click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
def compare(a: str, b: str, loader: str | None, rank: int | None, format_: str, output: str | None) -> None:
    """Say what is different in run B, and what that does to the step.

    A and B are what `headrace report` reads: run folders, segments, saved reports.
    """
    first, second = both_loaded(a, b, loader, rank)
    comparison = Comparison([first], [second], side_names(a, b))
    if format_ == "json":
        said = comparison.to_json() + "\n"
    elif format_ == "html":
        said = comparison.to_html() + "\n"
    else:
        said = comparison.to_text(color=output is None and sys.stdout.isatty())
    write(said, output)
