"""``headrace fleet PATH``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click


@click.command()
@click.argument("path")
@click.option(
    "--engine",
    metavar="local|ray|dask|mpi|MODULE:EXECUTOR",
    default="local",
    show_default=True,
    help="Where jobs are read.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where summaries of jobs are kept (default: .headrace-cluster in PATH).",
)
@click.option("--price-per-hour", type=float, metavar="PRICE", help="Of one accelerator, in any currency.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write the page to FILE as well."
)
@click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
def fleet(
    path: str,
    engine: str,
    cache: str | None,
    price_per_hour: float | None,
    format_: str,
    html: str | None,
    output: str | None,
) -> None:
    """Say how many accelerator hours the jobs below PATH lose to their input, and what to change.

    PATH has the run folders of the jobs, at any depth. It may be a URL that fsspec opens.
    """
    # Imported here, because they import multiprocessing.
    from headrace.cluster._engines import engine as open_engine
    from headrace.cluster.fleet import Fleet

    progress = _progress if sys.stderr.isatty() else None
    with open_engine(engine) as executor:
        loaded = Fleet.load(path, executor, cache=cache, price_per_hour=price_per_hour, progress=progress)
    if progress is not None:
        click.echo("\r\033[K", nl=False, err=True)
    if html is not None:
        loaded.to_html(html)
    if format_ == "json":
        text = loaded.to_json() + "\n"
    else:
        width = shutil.get_terminal_size((100, 24)).columns if output is None else 100
        text = loaded.to_text(width=min(width, 120))
    if output is None:
        click.echo(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def _progress(done: int, of: int) -> None:
    click.echo(f"\rreading jobs: {done:,} of {of:,}", nl=False, err=True)
