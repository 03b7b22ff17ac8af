"""``headrace report RUN``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from headrace.common.plain import plain
from headrace.errors import Error, UsageError
from headrace.results.live_ranks import LiveRanks, segments_of
from headrace.results.load import NoInputError, may_show_input
from headrace.results.ranks import load_starving
from headrace.results.sentences import live_lines
from headrace.show.cli import _shared
from headrace.show.loading import KINDS, kind_of
from headrace.traces.files import is_url


@click.command()
@click.argument("run", metavar="PATH", type=click.Path())
@click.option("--loader", metavar="NAME", help="Which loader (default: the one that trains).")
@click.option(
    "--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the one that starves most)."
)
@_shared.formats("text", "json", "html")
@click.option("--summary", is_flag=True, help="With --format json: what matters, at most 4 kB.")
@click.option(
    "--trace", metavar="FILE", help="A device trace of the run: adds its steps and why the device was idle."
)
@click.option(
    "--table", "table", metavar="NAME", help="A table of another profiler's files; `list` names them."
)
@click.option("--search", metavar="TEXT", help="With --table: rows in which a text contains TEXT.")
@click.option("--group-by", metavar="COLUMN", help="With --table: groups of equal values.")
@click.option("--sort-by", metavar="COLUMN", help="With --table: largest first.")
@_shared.fp_point
@_shared.bp_point
@_shared.output
@click.pass_context
def report(
    context: click.Context,
    run: str,
    loader: str | None,
    rank: int | None,
    format_: str,
    summary: bool,
    trace: str | None,
    table: str | None,
    search: str | None,
    group_by: str | None,
    sort_by: str | None,
    fp_point: str | None,
    bp_point: str | None,
    output: str | None,
) -> None:
    """Print the report of PATH: a run folder (running, finished or dead), a .hrseg segment, a saved report.

    PATH may be a folder of MindSpore's profiler as well (docs/mindspore.md), or a profile of JAX or
    TensorFlow (.xplane.pb, or the folder that the profiler was given). A folder of runs is listed as by
    `headrace ls`; the folder of a job's ranks, of several jobs, a device trace and a memory snapshot are
    summarised as by `headrace cluster`, `fleet` and `trace`.
    """
    if table is None and (search or group_by or sort_by):
        raise click.UsageError("--search, --group-by and --sort-by need --table NAME")
    if summary and (format_ != "json" or table is not None):
        raise click.UsageError("--summary needs --format json, without --table")
    if trace is None and (fp_point is not None or bp_point is not None):
        raise click.UsageError("--fp-point and --bp-point need --trace FILE")
    kind = kind_of(run)
    may_be_run = kind == "trace" and not is_url(run) and may_show_input(Path(run))
    if kind != "run" and not may_be_run:
        _other(context, run, kind)
        return
    try:
        loaded, why = load_starving(run, loader, rank)
    except Error as error:
        if not may_be_run:
            raise
        _other(context, run, kind, loaded=error.trace if isinstance(error, NoInputError) else None)
        return
    if why and format_ == "text":
        click.echo(f"{plain(why)}; another one: --rank N", err=True)
    if table == "list":
        _shared.write("\n".join(loaded.tables) + "\n", output)
        return
    if table is not None:
        query = {"search": search or "", "group_by": group_by or "", "sort_by": sort_by or ""}
        _shared.write_table(format_, loaded.tables.query(table, **query), output)
        return
    if format_ == "text":
        live = LiveRanks(lambda: segments_of(run)).of_loader(loaded.loader)
        if live.headline:  # else no rank records now
            click.echo("\n".join(map(plain, live_lines(live))), err=True)
    problem: Error | None = None
    if trace is not None:
        try:
            loaded = loaded.with_trace(trace, fp_point=fp_point, bp_point=bp_point)
        except Error as error:
            problem = error  # said below what the run itself has to say
    if summary:
        from headrace.results import summary as _summary

        _shared.write(_summary.to_json(loaded.to_summary()) + "\n", output)
    else:
        _shared.write_as(format_, loaded, output, color=_shared.has_color(output))
    others = [name for name in loaded.loaders if name != loaded.loader]
    if others and loader is None and format_ == "text":
        click.echo(f"other loaders in this run: {', '.join(map(plain, others))} (--loader NAME)", err=True)
    if problem is not None:
        raise problem


def _other(context: click.Context, path: str, kind: str, **more: Any) -> None:
    """Runs the command for what lies at the path, with the options that were given."""
    what, _, name = KINDS[kind]
    root = context.find_root().command
    command = root.get_command(context, name) if isinstance(root, click.Group) else None
    assert command is not None
    instead = f"headrace {name} {shlex.quote(path)}"
    given = {
        name: value
        for name, value in context.params.items()
        if name != "run" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    known = {one.name: one.type for one in command.params}
    for option, value in given.items():
        type_ = known.get(option)
        if type_ is None or (isinstance(type_, click.Choice) and value not in type_.choices):
            raise UsageError(f"{path} is {what}, which has no such option: {instead} --help")
    click.echo(f"headrace: {path} is {what}: {instead}", err=True)
    place = next(one for one in command.params if isinstance(one, click.Argument))
    context.invoke(command, **given, **{str(place.name): (path,) if place.nargs < 0 else path}, **more)
