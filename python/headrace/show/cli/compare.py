"""``headrace compare A B``: two runs side by side."""

from __future__ import annotations

import sys
from functools import partial

import click

from headrace.predict.comparison import Comparison, like_it, loaded, side_names
from headrace.results.report import Report


@click.command()
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--loader", metavar="NAME", help="Which loader (default: the one of A that trains).")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the lowest).")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
@click.option("-o", "out", type=click.Path(), metavar="FILE", help="Write to FILE.")
def compare(a: str, b: str, loader: str | None, rank: int | None, form: str, out: str | None) -> None:
    """Say what is different in run B, and what that does to the step.

    A and B are what `headrace report` reads: run folders, segments, saved reports.
    """
    first, second = load_both(a, b, loader, rank)
    comparison = Comparison([first], [second], side_names(a, b))
    if form == "json":
        said = comparison.to_json() + "\n"
    elif form == "html":
        said = comparison.to_html() + "\n"
    else:
        said = comparison.to_text(color=out is None and sys.stdout.isatty())
    if out is None:
        click.echo(said, nl=False)
    else:
        with open(out, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(said)


def load_both(a: str, b: str, loader: str | None, rank: int | None) -> tuple[Report, Report]:
    """One loader of both runs, which either may have under the name ``loader``."""
    of_a, of_b = partial(loaded, a, rank), partial(loaded, b, rank)
    if loader is None or loader in of_a(None).loaders:
        first = of_a(loader)
        return first, like_it(first, of_b)
    second = of_b(loader)
    return like_it(second, of_a), second
