"""The ``headrace`` command: one file per subcommand.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a check did not hold.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from headrace import __version__
from headrace.cli.check import check
from headrace.cli.demo import demo
from headrace.cli.report import report
from headrace.errors import Error, UsageError


class _Group(click.Group):
    """Errors are one line on stderr; ``--debug`` shows the traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (Error, OSError) as error:
            if ctx.params.get("debug"):
                raise
            click.echo(f"headrace: {' '.join(str(error).split())}", err=True)
            sys.exit(2 if isinstance(error, UsageError) else 1)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="headrace")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Names the operator of an input pipeline that keeps an accelerator waiting, and what to change."""


main.add_command(demo)
main.add_command(report)
main.add_command(check)
