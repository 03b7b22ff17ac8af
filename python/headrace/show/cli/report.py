"""``headrace report RUN``."""

from __future__ import annotations

import os
import shlex
import sys

import click
from click.core import ParameterSource

from headrace.common.plain import plain
from headrace.errors import Error, UsageError
from headrace.results.live_ranks import LiveRanks, segments_of
from headrace.results.ranks import RankWait, most_starving, ranks_of, why_this_one
from headrace.results.report import Report
from headrace.results.sentences import live_lines
from headrace.show.cli import _options
from headrace.show.cli._output import table_width, text_width, write
from headrace.show.cli.cluster import cluster
from headrace.show.cli.fleet import fleet
from headrace.show.cli.runs import runs
from headrace.show.cli.trace import trace as trace_command
from headrace.show.loading import kind_of
from headrace.traces.files import is_url

#: The command for what is no run, its argument, and what such a path is called.
_OTHERS = {
    "runs": (runs, "folder", "a folder of runs"),
    "fleet": (fleet, "path", "a folder of jobs"),
    "job": (cluster, "path", "the folder of a job's ranks"),
    "trace": (trace_command, "paths", "a device trace"),
    "snapshot": (trace_command, "paths", "a memory snapshot"),
}


@click.command()
@click.argument("run", metavar="PATH", type=click.Path())
@click.option("--loader", metavar="NAME", help="Which loader (default: the one that trains).")
@click.option(
    "--rank", type=click.IntRange(min=0), metavar="N", help="Which rank (default: the one that starves most)."
)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
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
@_options.fp_point
@_options.bp_point
@click.option("-o", "output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE.")
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
    if kind in _OTHERS and (kind != "trace" or is_url(run)):
        _other(context, run, *_OTHERS[kind])
        return
    chosen = loader
    ranks = _readable_ranks(run, loader) if rank is None else []
    if ranks:
        shown = most_starving(ranks)
        rank, chosen = shown.rank, shown.loader
        if len(ranks) > 1 and format_ == "text":
            click.echo(f"{plain(why_this_one(shown, ranks))}; another one: --rank N", err=True)
    try:
        loaded = Report.load(run, loader=chosen, rank=rank)
    except Error:
        if kind != "trace":
            raise
        _other(context, run, *_OTHERS[kind])  # it does not show the input
        return
    if format_ == "text" and table is None:
        live = LiveRanks(lambda: segments_of(run)).of_loader(loaded.loader)
        if live.headline:  # else no rank records now
            click.echo("\n".join(map(plain, live_lines(live))), err=True)
    if table is not None:
        query = {"search": search or "", "group_by": group_by or "", "sort_by": sort_by or ""}
        _print_table(loaded, table, query, format_, output)
        return
    problem: Error | None = None
    if trace is not None:
        try:
            loaded = loaded.with_trace(trace, fp_point=fp_point, bp_point=bp_point)
        except Error as error:
            problem = error  # said below what the run itself has to say
    on_terminal = output is None and sys.stdout.isatty()
    if summary:
        from headrace.results import summary as _summary

        text = _summary.to_json(loaded.to_summary()) + "\n"
    elif format_ == "json":
        text = loaded.to_json() + "\n"
    elif format_ == "html":
        text = loaded.to_html()
    else:
        color = on_terminal and "NO_COLOR" not in os.environ
        text = loaded.to_text(width=text_width(output), color=color).rstrip("\n") + "\n"
    write(text, output)
    others = [name for name in loaded.loaders if name != loaded.loader]
    if others and loader is None and format_ == "text":
        click.echo(f"other loaders in this run: {', '.join(map(plain, others))} (--loader NAME)", err=True)
    if problem is not None:
        raise problem


def _other(context: click.Context, path: str, command: click.Command, argument: str, what: str) -> None:
    """Runs the command for what lies at the path, with the options that were given."""
    instead = f"headrace {command.name} {shlex.quote(path)}"
    given = {
        name: value
        for name, value in context.params.items()
        if name != "run" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    known = {one.name: one.type for one in command.params}
    for name, value in given.items():
        kind = known.get(name)
        if kind is None or (isinstance(kind, click.Choice) and value not in kind.choices):
            raise UsageError(f"{path} is {what}, which has no such option: {instead} --help")
    click.echo(f"headrace: {path} is {what}: {instead}", err=True)
    context.invoke(command, **given, **{argument: (path,) if argument == "paths" else path})


def _print_table(
    loaded: Report,
    name: str,
    query: dict[str, str],
    format_: str,
    output: str | None,
) -> None:
    tables = loaded.tables
    if name == "list":
        text = "\n".join(tables)
    else:
        table = tables.query(name, **query)
        if format_ == "json":
            text = table.to_json(indent=2)
        elif format_ == "html":
            text = str(table._repr_html_())
        else:
            text = table.to_text(width=table_width(output)).rstrip("\n")
    write(text + "\n", output)


def _readable_ranks(run: str, loader: str | None) -> list[RankWait]:
    """Empty where a rank cannot be read: the report says which."""
    try:
        return ranks_of(run, loader)
    except Error:
        return []
