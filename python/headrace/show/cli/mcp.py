"""``headrace mcp [FOLDER]``: recorded runs for assistants."""

from __future__ import annotations

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("folder", type=click.Path(), default=_shared.RUNS)
def mcp(folder: str) -> None:
    """Answer an assistant's questions about the runs of FOLDER (default: headrace-runs).

    The assistant starts this command and speaks the Model Context Protocol with it on stdin and stdout. It
    can list runs, read reports, try changes, compare runs, and read tables of device traces in FOLDER. It
    cannot write, or read anything outside of FOLDER.
    """
    from headrace.show.mcp.server import make_server
    from headrace.show.mcp.tools import Tools

    make_server(Tools(folder)).run()
