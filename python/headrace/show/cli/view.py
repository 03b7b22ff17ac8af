"""``headrace view [PATH]``: runs in a browser, live."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack

import click

from headrace.show.cli import _shared


@click.command()
@click.argument("path", type=click.Path(), default=_shared.RUNS)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 (the default): a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(path: str, port: int, host: str, no_browser: bool) -> None:
    """Show the runs of PATH in a browser, and follow those that record now.

    PATH is a folder with runs at any depth (default: headrace-runs), one run, a saved
    report, or a file of `headrace tune -o`. The first line is the address; it holds a
    token without which nothing is shown. Ctrl-C ends it.
    """
    from headrace.results.library import Library
    from headrace.show.view.guard import opened
    from headrace.show.view.server import serve

    # The server ends by the signal that ended it, which must not skip what is removed here.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as browser:

        def ready(address: str) -> None:
            click.echo(address)
            if not no_browser:
                browser.enter_context(opened(address))

        serve(Library(path, tunings=True), host, port, ready)
