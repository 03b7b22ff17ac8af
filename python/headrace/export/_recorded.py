"""Reports on what records now, or on a run folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace._session import absolute_run
from headrace.errors import Error
from headrace.report import Report


class RecordedReports:
    """All loaders' reports, made again at most once per ``every_s``. Thread-safe as far as callers lock."""

    def __init__(
        self,
        run: str | os.PathLike[str] | None,
        every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """run: its folder, with all of its ranks; None: what this process records when it is asked."""
        self._run = None if run is None else absolute_run(run)
        self._every_s = every_s
        self._clock = clock
        self._at = float("-inf")
        self._reports: list[Report] = []

    def reports(self) -> list[Report]:
        """Never fails: what cannot be read is left out."""
        now = self._clock()
        if now - self._at >= self._every_s:
            self._reports = [report for path in self._segments() for report in reports_in(path)]
            self._at = now
        return self._reports

    def _segments(self) -> list[str]:
        if self._run is None:
            session = _core.current_session()
            return [session.live_path] if session is not None and session.live_path else []
        try:
            return [segment["path"] for segment in _core.find_segments(self._run)]
        except Error:
            return []


def reports_in(path: str) -> list[Report]:
    """Of every loader in a segment; empty if it cannot be read."""
    try:
        entries: list[dict[str, Any]] = _core.segment_loaders(path)
        return [Report(_core.segment_profile_json(path, entry["index"])) for entry in entries]
    except Error:
        return []  # a segment that is being written for the first time, or has just gone
