"""``headrace tune SCRIPT``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from headrace.errors import Error, UsageError
from headrace.show.cli import _shared

_ONE_RANK = (
    "the environment is that of a job with several ranks. Only this rank is tuned; a script that waits for "
    "the others cannot run"
)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", value)
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is no time: write 90s, 10m or 1h", ctx, param)
    return float(found[1]) * _UNITS[found[2]]


def _output(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None or (value.endswith((".html", ".json")) and Path(value).absolute().parent.is_dir()):
        return value
    raise click.BadParameter(
        f"{value!r}: name a file that ends in .html or .json, in a folder that exists", ctx, param
    )


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--steps", type=click.IntRange(min=8), default=300, show_default=True, metavar="N",
    help="Steps of each trial.",
)  # fmt: skip
@click.option(
    "--budget", callback=_seconds, default="10m", show_default=True, metavar="TIME",
    help="No trial ends later: 90s, 10m, 1h.",
)  # fmt: skip
@click.option(
    "--scratch/--in-place", "scratch", default=True, show_default=True,
    help="What the script writes goes into a copy that is removed, or into the folder itself.",
)  # fmt: skip
@click.option(
    "-o", "--out", callback=_output, metavar="FILE",
    help="Also write the trials: FILE.html is a page, FILE.json is shown by `headrace view`.",
)  # fmt: skip
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@click.argument("script")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def tune(
    steps: int,
    budget: float,
    scratch: bool,
    out: str | None,
    is_module: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Find faster parameters for the loader of an unchanged SCRIPT, by running it with them.

    The script runs several times, each time with other parameters of one loader (the one whose loop does N
    steps first), until its loop has done N steps. Then it ends as by sys.exit(0).
    """
    from headrace.common.launcher import in_a_job
    from headrace.predict.search import Search
    from headrace.predict.tuning import tuned
    from headrace.record.session import enabled
    from headrace.run.launch import program_of
    from headrace.run.scratch import WorkingFolder
    from headrace.run.script_trials import ScriptTrials
    from headrace.run.supervisor import ended_by_signals

    if not enabled():
        raise Error("nothing can be tuned while HEADRACE=0 switches recording off")
    if script == "-":
        raise UsageError("the script runs several times, so it cannot come on stdin: give its file")
    program = program_of(script, arguments, is_module)
    with ended_by_signals(), _shared.progress() as show, WorkingFolder(not scratch, program) as folder:
        click.echo(f"headrace: {folder.in_words}", err=True)
        if in_a_job():
            click.echo(f"headrace: {_ONE_RANK}", err=True)
        trials = ScriptTrials(program, steps, budget, folder, show)
        search = Search(trials, budget, trials.tunable, trials.begins)
        found = tuned(search, budget, steps, "--budget {}s", "--steps {}")
    click.echo(found.to_text(), nl=False)
    if out is not None:
        found.to_html(out) if out.endswith(".html") else found.save(out, Path(script).name)
    changed = found.changed
    click.echo(f"\nchange   {trials.line_to_change(changed) if changed else 'nothing'}")
    if not trials.any_tunable:
        click.echo(
            f"headrace: parameters of {trials.loader!r} cannot be set from outside. `headrace run` says what "
            "to change",
            err=True,
        )
