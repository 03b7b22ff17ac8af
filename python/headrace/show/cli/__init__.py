"""The ``headrace`` command: one file per subcommand.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a check did not hold.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn

import click

from headrace._core import __version__
from headrace.common.plain import error_line
from headrace.errors import Error, UsageError
from headrace.show.cli.check import check
from headrace.show.cli.cluster import cluster
from headrace.show.cli.compare import compare
from headrace.show.cli.demo import demo
from headrace.show.cli.env import env
from headrace.show.cli.fleet import fleet
from headrace.show.cli.mcp import mcp
from headrace.show.cli.report import report
from headrace.show.cli.run import run
from headrace.show.cli.runs import runs
from headrace.show.cli.timeline import timeline
from headrace.show.cli.top import top
from headrace.show.cli.trace import trace
from headrace.show.cli.tune import tune
from headrace.show.cli.view import view


class _Group(click.Group):
    """Errors are one line on stderr; ``--debug`` shows the traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _replace_closed()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # what a terminal cannot show must not end the command
        try:
            result = super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.ClickException as error:
            if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # click 8.2
                error.show()
            else:
                said = error_line(error.format_message())
                context = getattr(error, "ctx", None)
                about = context.command_path if context is not None else "headrace"
                click.echo(f"headrace: {said} (see {about} --help)", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("headrace: interrupted", err=True)
            sys.exit(1)
        except OSError as error:  # of --help and --version, which are printed before a command is invoked
            _leave(error)
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (Error, OSError) as error:
            if ctx.params.get("debug") and not isinstance(error, BrokenPipeError):
                raise
            _leave(error)


def _replace_closed() -> None:
    """Output that the shell has closed (`>&-`) goes nowhere. Processes that are started find it closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end


def _leave(error: Error | OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        # Whoever reads has seen enough (`| head`). Nothing more is written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    click.echo(f"headrace: {error_line(error)}", err=True)
    sys.exit(2 if isinstance(error, UsageError) else 1)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="headrace")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Names the operator of an input pipeline that keeps an accelerator waiting, and what to change."""


main.add_command(demo)
main.add_command(run)
main.add_command(env)
main.add_command(report)
main.add_command(runs)
main.add_command(check)
main.add_command(compare)
main.add_command(cluster)
main.add_command(fleet)
main.add_command(mcp)
main.add_command(timeline)
main.add_command(top)
main.add_command(trace)
main.add_command(tune)
main.add_command(view)
