"""``headrace run SCRIPT``."""

from __future__ import annotations

import click

from headrace.errors import UsageError


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--out", type=click.Path(), metavar="DIR", help="The run folder (default: as for hr.wrap).")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@click.option(
    "--ceiling", is_flag=True, help="Also measure the step without input: some steps repeat a few batches."
)
@click.option("--open", "open_", is_flag=True, help="Write headrace-page.html to the run folder and open it.")
@click.option(
    "--watch", is_flag=True, help="Also look for what is wrong with the data and the models (docs/watch.md)."
)
@click.option("--autopilot", is_flag=True, hidden=True)
@click.argument("script")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run(
    out: str | None,
    is_module: bool,
    ceiling: bool,
    open_: bool,
    watch: bool,
    autopilot: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run an unchanged SCRIPT and report on the loader that it waited for most.

    What stands after SCRIPT is the script's own, --help and -- included. The exit status is the script's.
    """
    from headrace.run.launch import launch, program_of  # ctypes and subprocess only where they are used

    if out == "":
        raise UsageError("--out is a folder, not an empty name")
    if autopilot:
        raise UsageError(
            "--autopilot was removed, because a loader that is set from outside may yield other batches: "
            "use hr.autopilot(make, ...) in the script, or headrace tune"
        )
    launch(program_of(script, arguments, is_module), out, ceiling, open_, watch)
