"""``headrace cluster PATH``."""

from __future__ import annotations

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("path")
@_shared.summary_options("ranks")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    metavar="RANKS",
    help="The ranks of a stage of the pipeline, as 0-7 or 0-56/8; once for each stage, in order "
    "(default: as the traces' process groups say).",
)
@_shared.formats("text", "json", "html")
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the latest, the median and the earliest rank into one timeline for Perfetto.",
)
@_shared.output
def cluster(
    path: str,
    engine: str,
    cache: str | None,
    stages: tuple[str, ...],
    format_: str,
    timeline: str | None,
    output: str | None,
) -> None:
    """Say which rank of a job is slow, why, and what the job would gain.

    PATH has the files of the ranks, together or in a folder each: Headrace's recordings, PyTorch's or other
    device traces, Ascend profiles. It may be a URL that fsspec opens.
    """
    # Imported here, because they import multiprocessing.
    from headrace.cluster import Cluster
    from headrace.cluster._reading import engine as open_engine

    with open_engine(engine) as executor, _shared.reading("ranks") as progress:
        loaded = Cluster.load(path, executor, cache=cache, stages=stages or None, progress=progress)
    _shared.write_as(format_, loaded, output)
    if timeline is not None:
        for note in loaded.timeline(timeline).notes:
            click.echo(f"headrace: {note}", err=True)
