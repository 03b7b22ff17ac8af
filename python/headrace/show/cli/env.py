"""``headrace env``."""

from __future__ import annotations

import json
import os
import shlex

import click

from headrace.errors import UsageError
from headrace.show.cli import _shared


@click.command()
@click.option("--out", type=click.Path(), metavar="DIR", help="The run folder (default: as for hr.wrap).")
@_shared.formats("shell", "json")
def env(out: str | None, format_: str) -> None:
    """Print the environment in which every Python program records its loaders.

    For launchers that start the programs themselves: eval "$(headrace env)", then
    the launcher. No report is printed at the end: headrace report DIR does that.
    """
    from headrace.record.session import absolute_run
    from headrace.run.environment import recording_variables

    if out == "":
        raise UsageError("--out is a folder, not an empty name")
    variables = recording_variables(os.environ)
    if out is not None:
        variables["HEADRACE_DIR"] = absolute_run(out)
    if format_ == "json":
        click.echo(json.dumps(variables))
    else:
        for name, value in variables.items():
            click.echo(f"export {name}={shlex.quote(value)}")
