"""``headrace timeline RUN``."""

from __future__ import annotations

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("run", type=click.Path())
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Path(),
    metavar="FILE...",
    help="Device traces, folders of them, URLs (fsspec).",
)
@click.argument("more_traces", nargs=-1, type=click.Path(), metavar="")
@click.option(
    "-o", "output", type=click.Path(dir_okay=False), metavar="OUT", help="Default: RUN/timeline.json.gz."
)
def timeline(run: str, traces: tuple[str, ...], more_traces: tuple[str, ...], output: str | None) -> None:
    """Merge RUN and device traces into one file for Perfetto (ui.perfetto.dev) or chrome://tracing.

    RUN is a run folder (running, finished or dead) or a .hrseg segment; without a trace it alone makes a
    timeline. It may also be a folder of MindSpore's or Ascend's profiler, whose ranks go into one file.
    """
    if more_traces and not traces:
        raise click.UsageError(f"unexpected {more_traces[0]!r}: device traces come behind --trace")
    from headrace.results.timeline import merge

    with _shared.progress() as show:
        given = [*traces, *more_traces]
        merged = merge(run, given, output, progress=lambda share: show and show(f"merge: {share:.0%}"))
    click.echo(
        f"{merged.path}: {merged.slices} slices, {merged.counters} queue levels, {merged.flows} arrow ends, "
        f"{merged.bytes / 1e6:.1f} MB"
    )
    if traces:
        error = merged.clock_error_s
        click.echo("clock error: " + ("unknown" if error is None else f"{error * 1e3:.3f} ms"))
    for note in merged.notes:
        click.echo(f"note: {note}", err=True)
