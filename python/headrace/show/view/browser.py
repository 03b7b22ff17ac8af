"""Opens an address with a token in the browser, where no other user of the machine reads it.

A command line is visible to everybody (`ps`). So the browser is given a file that only its user may read, and
that leads to the address.
"""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>headrace</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={address}"></head>
<body><a href="{address}">the runs</a></body></html>
"""


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Opens it; the file is there until the end of the block."""
    path = None
    try:
        with suppress(OSError):  # no room for it: the address is printed, too
            descriptor, path = tempfile.mkstemp(prefix="headrace-", suffix=".html")  # mode 0600
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(_PAGE.format(address=escape(address)))
            webbrowser.open(f"file://{path}")
        yield
    finally:
        if path is not None:
            Path(path).unlink(missing_ok=True)
