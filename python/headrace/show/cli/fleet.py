"""``headrace fleet PATH``."""

from __future__ import annotations

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("path")
@_shared.summary_options("jobs")
@click.option("--price-per-hour", type=float, metavar="PRICE", help="Of one accelerator, in any currency.")
@_shared.formats("text", "json")
@click.option(
    "--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write the page to FILE as well."
)
@_shared.output
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
    from headrace.cluster._reading import engine as open_engine
    from headrace.cluster.fleet import Fleet

    with open_engine(engine) as executor, _shared.reading("jobs") as progress:
        loaded = Fleet.load(path, executor, cache=cache, price_per_hour=price_per_hour, progress=progress)
    if html is not None:
        loaded.to_html(html)
    _shared.write_as(format_, loaded, output)
