"""For tools that are written to: the figures of the loops now and then, page and timeline at the end."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol

from headrace import _core
from headrace.common.handlers import start_without_signals
from headrace.common.plain import typed_error_line
from headrace.errors import Error
from headrace.export._metrics import scalars
from headrace.export._recorded import reports_in
from headrace.results.live_ranks import LiveRanks, local_segments
from headrace.results.report import Report
from headrace.results.sentences import one_line


class Target(Protocol):
    """A tool that keeps what it is given. Its methods are called from one thread at a time."""

    def figures(self, report: Report, figures: dict[str, float]) -> None:
        """``figures`` of the loop so far, named ``LOADER/wait_ratio`` and so on."""

    def verdict(self, report: Report, sentence: str) -> None:
        """At the end: what the loop was found to be."""

    def files(self, paths: Sequence[Path]) -> None:
        """At the end: the pages and the timeline, in a folder that is removed afterwards."""


class Publisher:
    """Publishes what this process records until `close`, or until the process ends.

    Also a context manager. What goes wrong in the target is logged once and ends the publishing, never the
    program.
    """

    def __init__(self, target: Target, every_s: float) -> None:
        self._target = target
        self._every_s = every_s
        self._end = threading.Event()
        self._lock = threading.Lock()
        #: Paths where the segment may be: a run that ends moves it.
        self._places: tuple[str, ...] = ()
        self._reports: list[Report] = []
        self._failed = False
        self._live = LiveRanks(local_segments)
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="headrace-publisher", daemon=True)
        start_without_signals(self._thread)
        atexit.register(self.close)

    def close(self) -> None:
        """Publish the last figures, verdict, page and timeline. Idempotent."""
        if self._end.is_set() or os.getpid() != self._process:
            return  # a forked child has neither the thread nor anything to add
        self._end.set()
        atexit.unregister(self.close)
        self._thread.join()
        self._guarded(self._publish)
        self._guarded(self._finish)

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- in the thread ---

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            self._guarded(self._publish)

    def _publish(self) -> None:
        self._read()
        for report in self._reports:
            found = scalars(report, self._live.of_loader(report.loader))
            figures = {f"{report.loader}/{name}": value for name, value in found.items()}
            self._target.figures(report, figures)

    def _read(self) -> None:
        session = _core.current_session()
        if session is not None and session.live_path:
            self._places = session.live_path, str(Path(session.run) / f"rank{session.rank}.hrseg")
        place = self._place()
        # The last reading is kept: a run without a name leaves nothing behind.
        self._reports = (reports_in(place) if place else []) or self._reports

    def _place(self) -> str | None:
        return next((place for place in self._places if os.path.exists(place)), None)  # noqa: PTH110

    def _finish(self) -> None:
        if not self._reports:
            return
        folder = Path(tempfile.mkdtemp(prefix="headrace-"))
        try:
            files = []
            for at, report in enumerate(self._reports):
                self._target.verdict(report, one_line(report))
                number = f"-{at}" if at else ""
                files.append(folder / f"headrace-rank{report.rank}{number}.html")
                report.to_html(files[-1])
            timeline = self._timeline(folder)
            self._target.files([*files, timeline] if timeline else files)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _timeline(self, folder: Path) -> Path | None:
        from headrace.results.timeline import merge

        place = self._place()
        if place is None:
            return None
        out = folder / f"headrace-rank{self._reports[0].rank}.timeline.json.gz"
        try:
            merge(place, out=out)
        except (Error, OSError):
            return None  # the run has just ended, and left nothing
        return out

    def _guarded(self, act: Callable[[], None]) -> None:
        with self._lock:
            if self._failed:
                return
            try:
                act()
            except Exception as error:  # the loop goes on, whatever the tool does
                self._failed = True
                reason = typed_error_line(error)
                logging.getLogger("headrace").warning("figures are no longer exported: %s", reason)
