"""Output of ``headrace run`` after the script: how it ended, what was recorded, one report, and its page."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
import textwrap
from pathlib import Path

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.common.messages import say, write
from headrace.common.plain import error_line, plain, typed_error_line
from headrace.errors import Error
from headrace.results.load import Entry, entries_in, in_order, report_on
from headrace.results.ranks import RankWait, most_starving, ranks_in, why_this_one
from headrace.results.report import Report
from headrace.run.folder import RunFolder
from headrace.traces.table_text import seconds

#: Loaders in the list; a parameter search may make hundreds.
_LISTED = 8
#: Without one of them there is no window to show a page in, and a browser in the terminal is not wanted.
_DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def print_summary(
    folder: RunFolder, ended: str, ceiling: bool = False, batches_from: str = ""
) -> Report | None:
    """Prints the report of the loader that comes first, on the rank that starves most, and returns it.

    ended: how the script ended, empty for a normal end. ceiling: was it to be measured? batches_from: what
    makes the batches of a loop without a loader, if samples of its stack show it.
    """
    try:
        segments = folder.new_segments()
        ranks = sorted({rank for _, rank in segments})
        waits = _waits(segments, folder.path) if len(ranks) > 1 else []
        shown = most_starving(waits).rank if waits else (ranks or [0])[0]
        own = (path for path, rank in segments if rank == shown)
        loaders = in_order(entries_in(own, iterated=True), folder.path)
        if not loaders:
            unsaved = _unsaved(folder)
            say(f"{ended + '; ' if ended else ''}nothing was recorded: {unsaved or _NO_LOADER}")
            if batches_from:
                say(batches_from)
            elif not ended and not unsaved:
                write(_WRAP_IT)
            folder.remove_if_empty()
            return None
        names = [loader["name"] for _, loader in loaders]
        others = [(path, rank) for path, rank in segments if rank != shown]
        listed = loaders[:_LISTED]
        reports = [report_on(Report, one, folder.path, names, ranks, others) for one in listed]
    except Exception as error:  # the status must still be returned, whatever is in the folder
        say(f"{ended + '; ' if ended else ''}no report: {typed_error_line(error)}")
        return None
    run = as_typed(folder.path)
    say(f"{ended}; recorded in {run}" if ended else f"recorded in {run}")
    if len(loaders) > 1 or len(ranks) > 1:
        write(_overview(loaders, reports, waits, run))
    write("\n" + _text(reports[0]))
    if ceiling:
        write("\n" + _ceilings(reports))
    return reports[0]


def _ceilings(reports: list[Report]) -> str:
    """The ceiling of each measured loader; with its name if it is not the one of the report above."""
    lines = ""
    for report in reports:
        if report.profile.sink.ceiling_step_s is not None:
            lines += _ceiling(report, "" if report is reports[0] else f"{plain(report.loader)}: ")
    none = "CEILING   not measured: no loop had enough steps with batches that can be copied\n"
    return lines or none


def _ceiling(report: Report, name: str) -> str:
    sink = report.profile.sink
    ceiling_s = sink.ceiling_step_s
    assert ceiling_s is not None
    ratio = sink.step_s / ceiling_s
    gain = f"{ratio:.3g}x at most" if ratio > 1.02 else "nothing"
    return (
        f"CEILING   {name}a step over cached batches takes {seconds(ceiling_s)}; "
        f"recorded: {seconds(sink.step_s)}, "
        f"of it {seconds(sink.compute_s)} compute\n"
        f"          a faster input gains {gain}\n"
    )


def _waits(segments: list[tuple[str, int]], run: str) -> list[RankWait]:
    """Empty if a rank cannot be read: the report says which."""
    try:
        return ranks_in(segments, run)
    except Error:
        return []


_NO_LOADER = (
    "no loader was iterated "
    "(or only where Headrace cannot be seen: python -I, -E, -S, an environment without it)"
)
#: No recording is smaller.
_MIN_FILE_BYTES = 64 << 10
#: After that, for scripts whose loop has no DataLoader.
_WRAP_IT = """\
  To record a loop without a DataLoader, wrap what it takes its batches from:
      import headrace as hr
      for batch in hr.wrap(batches, name="train"):  # any iterable
  or, where a function makes them, as in x, y = get_batch("train"):
      get_batch = hr.wrap(get_batch)
  or mark the code that makes them:
      with hr.get_next(): ...
"""


def _unsaved(folder: RunFolder) -> str:
    """Why a recording could not be left in the folder; empty if unknown."""
    there = next(each for each in (folder.path, *map(str, Path(folder.path).parents)) if os.path.isdir(each))  # noqa: PTH112
    missing = _core.missing_recordings(folder.path) if there == folder.path else []
    if missing:
        return "; ".join(missing)
    if os.statvfs(there).f_bavail == 0:
        return f"the file system of {folder.path} is full"
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if 0 <= limit < _MIN_FILE_BYTES:
        return (
            f"no loader was iterated, or files may be too small for its recording ({limit} bytes, ulimit -f)"
        )
    return ""


def _overview(loaders: list[Entry], reports: list[Report], ranks: list[RankWait], run: str) -> str:
    """A line for each loader and the command that shows the others."""
    width = max(len(plain(report.loader)) for report in reports)
    lines = []
    for (_, loader), report in zip(loaders, reports, strict=False):  # the list may be longer
        waited_s = seconds(loader["wait_s"])
        sink = report.profile.sink
        verdict = plain(report.diagnosis.summary) or report.diagnosis.kind.replace("_", " ")
        waited = f"{waited_s:>7} ({sink.wait_share * 100:>3.0f} %)"
        line = f"  {plain(report.loader):<{width}}  {sink.steps:>7} batches  waited {waited}  {verdict}"
        lines += textwrap.wrap(line, _columns(), subsequent_indent="    ", break_on_hyphens=False)
    if len(loaders) > len(reports):
        lines.append(f"  and {len(loaders) - len(reports)} more")
    options = ["--loader NAME"] if len(loaders) > 1 else []
    if len(ranks) > 1:
        lines.append("  " + why_this_one(next(one for one in ranks if one.rank == reports[0].rank), ranks))
        options.append("--rank N")
    lines.append(f"  below, the first one; any other: headrace report {run} {' '.join(options)}")
    return "\n".join(lines) + "\n"


def as_typed(path: str) -> str:
    """Relative if it is below the current folder; quoted for a shell."""
    try:
        below = os.path.relpath(path)
    except OSError:  # the current folder is gone
        return shlex.quote(path)
    return shlex.quote(path if below.startswith(os.pardir) else below)


def _text(report: Report) -> str:
    color = _terminal_columns() is not None and "NO_COLOR" not in os.environ
    return report.to_text(width=_columns(), color=color).rstrip("\n") + "\n"


def _columns() -> int:
    return min(_terminal_columns() or 100, 120)


def _terminal_columns() -> int | None:
    """Width of the terminal that stderr goes to; None if it is not one, or closed."""
    try:
        if sys.stderr.isatty():
            return max(40, os.get_terminal_size(sys.stderr.fileno()).columns or 100)
    except (OSError, ValueError, AttributeError):
        pass
    return None


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
