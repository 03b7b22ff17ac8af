"""The report of a run as a page in its folder, opened in the browser."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from headrace.common.folder_files import replace_file
from headrace.common.messages import say
from headrace.common.plain import error_line
from headrace.results.report import Report
from headrace.run.summary import as_typed

#: Without one of them there is no window to show a page in, and a browser in the terminal is not wanted.
_DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def show_page(report: Report, folder: str) -> None:
    """Write ``headrace-page.html`` into ``folder``, say where it is, and open it if there is a display."""
    page = os.path.join(folder, "headrace-page.html")  # noqa: PTH118
    try:
        replace_file(page, report.to_html())
    except OSError as error:
        say(f"no page: {page}: {error.strerror or error_line(error)}")
        return
    say(f"page: {as_typed(page)}")
    if not any(os.environ.get(name) for name in _DISPLAYS):
        return
    import webbrowser

    # The signals that went to the script are blocked here: a browser would inherit that.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        opened = webbrowser.open(Path(page).as_uri())
    except (OSError, ValueError, webbrowser.Error, KeyboardInterrupt):
        opened = False
    if not opened:
        say("no browser could be started; open the page yourself")
