"""``headrace compare A B``: two runs side by side."""

from __future__ import annotations

import click

from headrace.predict.checks import both_loaded
from headrace.predict.comparison import Comparison, side_names
from headrace.show.cli import _shared


@click.command()
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--loader", metavar="NAME", help="Which loader (default: the one of A that trains).")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the lowest).")
@_shared.formats("text", "json", "html")
@_shared.output
def compare(a: str, b: str, loader: str | None, rank: int | None, format_: str, output: str | None) -> None:
    """Say what is different in run B, and what that does to the step.

    A and B are what `headrace report` reads: run folders, segments, saved reports.
    """
    first, second = both_loaded(a, b, loader, rank)
    comparison = Comparison([first], [second], side_names(a, b))
    _shared.write_as(format_, comparison, output, color=_shared.has_color(output))
