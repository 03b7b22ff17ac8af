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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{one.name:<8}", says) for one, says in commands.items()])

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


#: The commands, as `--help` shows them: by what they are for, with a line each.
_GROUPS = {
    "Record": {
        run: "Run an unchanged script and report on its loader.",
        demo: "Find and remove the bottleneck of a built-in pipeline.",
        tune: "Find faster loader parameters for an unchanged script.",
    },
    "Read": {
        report: "Print the report of a run, job, trace or snapshot.",
        view: "Show runs in a browser, live.",
        top: "Watch a run in the terminal.",
        compare: "Say what differs between two runs, and what it costs.",
        runs: "List the runs below a folder.",
    },
    "Device": {
        trace: "Say what the device did, from a profiler's traces.",
        timeline: "Merge a run and device traces for Perfetto.",
    },
    "Many": {
        cluster: "Say which rank of a job is slow, and why.",
        fleet: "Say what many jobs lose to their input.",
    },
    "Automate": {
        check: "Fail if a run waits too much, is slower or faulty.",
        mcp: "Answer an assistant's questions about runs.",
        env: "Print the environment that records Python programs.",
    },
}
for _commands in _GROUPS.values():
    for _command in _commands:
        main.add_command(_command)
main.add_command(runs, "runs")  # its name in 0.1
