"""``headrace top [RUN | --pid N]``: a run in a terminal, live."""

from __future__ import annotations

import sys

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("run", type=click.Path(), required=False)
@click.option("--pid", type=click.IntRange(min=1), metavar="N", help="The run that process N records.")
def top(run: str | None, pid: int | None) -> None:
    """Watch RUN in a terminal: what limits it, its operators, queues and ranks, and workers that hang.

    RUN is a run folder, or a folder of runs, of which the newest is shown (default: headrace-runs). Without
    a terminal, a line is printed every 10 seconds until the run has ended. Watching costs the run nothing.
    """
    from headrace.show.top.followed import Followed, folder_of, lines

    if run is not None and pid is not None:
        raise click.UsageError("give RUN or --pid N, not both")
    followed = Followed(folder_of(pid) if pid is not None else run or _shared.RUNS)
    if sys.stdout.isatty() and sys.stdin.isatty():
        from headrace.show.top.app import Top

        Top(followed).run()
        return
    for line in lines(followed):
        click.echo(line)
        sys.stdout.flush()
