"""``headrace report RUN``."""

from __future__ import annotations

import os
import sys

import click

from headrace.common.plain import plain
from headrace.errors import Error
from headrace.results.live_ranks import LiveRanks, segments_of
from headrace.results.ranks import RankWait, most_starving, ranks_of, why_this_one
from headrace.results.report import Report
from headrace.results.sentences import live_lines
from headrace.show.cli import _options
from headrace.show.cli._output import table_width, text_width, write


@click.command()
@click.argument("run", type=click.Path())
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
def report(
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
    """Print the report of RUN: a run folder (running, finished or dead), a .hrseg segment, a saved report.

    RUN may be a folder of MindSpore's profiler as well (docs/mindspore.md), or a profile of JAX or TensorFlow
    (.xplane.pb, or the folder that the profiler was given).
    """
    if table is None and (search or group_by or sort_by):
        raise click.UsageError("--search, --group-by and --sort-by need --table NAME")
    if summary and (format_ != "json" or table is not None):
        raise click.UsageError("--summary needs --format json, without --table")
    if trace is None and (fp_point is not None or bp_point is not None):
        raise click.UsageError("--fp-point and --bp-point need --trace FILE")
    chosen = loader
    ranks = _readable_ranks(run, loader) if rank is None else []
    if ranks:
        shown = most_starving(ranks)
        rank, chosen = shown.rank, shown.loader
        if len(ranks) > 1 and format_ == "text":
            click.echo(f"{plain(why_this_one(shown, ranks))}; another one: --rank N", err=True)
    loaded = Report.load(run, loader=chosen, rank=rank)
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
