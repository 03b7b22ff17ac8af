"""Notebooks: ``%load_ext headrace``, then ``%%headrace`` above a cell that holds a loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from headrace.common.handlers import start_without_signals
from headrace.record.session import enabled
from headrace.results.live_ranks import LiveRanks, local_segments
from headrace.results.report import Report
from headrace.results.sentences import one_line
from headrace.show.in_process import recorded_loops, waited_s

#: Between two updates of the line that is shown while the cell runs.
_EVERY_S = 2.0


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext headrace``."""

    def headrace(line: str, cell: str) -> Report | None:
        return run_cell(shell, line, cell)

    headrace.__doc__ = run_cell.__doc__
    shell.register_magic_function(headrace, "cell", "headrace")


def run_cell(shell: Any, line: str, cell: str) -> Report | None:
    """Record the loaders that the cell iterates, and show the report on the one that it waited for longest.

        %%headrace [RUN]
        for batch in loader:
            step(batch)

    DataLoaders are recorded as they are, other loaders and iterables if they are wrapped (`hr.wrap`) in the
    cell. A line says what was found so far while the cell runs. The recording ends with the cell; RUN names
    a folder that keeps it. The report is the cell's value: ``_`` in the next cell.
    """
    if not enabled():
        shell.run_cell(cell)
        return None
    with recorded_loops(line.strip()) as reports_so_far, _News(shell, reports_so_far):
        result = shell.run_cell(cell)
        reports = reports_so_far()
    if not reports:
        if result.success:
            print("headrace: no loop over a DataLoader or a wrapped loader began in this cell")
        return None
    longest = max(reports, key=waited_s)
    others = [report.loader for report in reports if report is not longest]
    if others:
        print(f"headrace: other loaders of this cell: {', '.join(others)}")
    return longest


class _News:
    """A line below the cell, until it has ended. In a terminal there is none."""

    def __init__(self, shell: Any, reports: Callable[[], list[Report]]) -> None:
        self._reports = reports
        self._shows = hasattr(shell, "kernel")
        self._end = threading.Event()
        self._shown: Any = None
        self._thread = threading.Thread(target=self._run, name="headrace-notebook", daemon=True)

    def __enter__(self) -> _News:
        if self._shows:
            from IPython.display import display

            self._shown = display(_line("recording"), display_id=True)
            start_without_signals(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._shows:
            self._thread.join()
            self._shown.update(_line(""))

    def _run(self) -> None:
        live = LiveRanks(local_segments)
        while not self._end.wait(_EVERY_S):
            reports = self._reports()
            if reports:
                longest = max(reports, key=waited_s)
                self._shown.update(
                    _line(f"{longest.loader}: {one_line(longest, live.of_loader(longest.loader))}")
                )


def _line(text: str) -> Any:
    from html import escape

    from IPython.display import HTML

    return HTML(f"<small>{escape(text)}</small>")
