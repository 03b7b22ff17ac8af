"""Reports on what records now, or on a run folder."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import Error
from headrace.record.session import absolute_run
from headrace.results.live_ranks import LiveRanks, LoopLive
from headrace.results.report import Report
from headrace.results.run_files import with_run_files

#: How far back the recent figures go: one to two of these.
_RECENT_S = 60.0


class Reading(NamedTuple):
    """One loop at one moment."""

    #: The report of the whole run.
    report: Report
    #: The report of its last minute or two; equal to ``report`` for a shorter run.
    recent: Report
    #: The loader on all ranks that are read, now.
    live: LoopLive | None = None

    @property
    def totals(self) -> _core.LoopTotals | None:
        """The counters of this loop."""
        ranks = self.live.ranks if self.live is not None else []
        return next((one.totals for one in ranks if one.rank == self.report.rank), None)


class RecordedReports:
    """All loaders' reports, made again at most once per ``every_s``. Thread-safe as far as callers lock."""

    def __init__(self, run: str | os.PathLike[str] | None, every_s: float) -> None:
        """run: its folder, with all of its ranks; None: what this process records when it is asked."""
        self._run = None if run is None else absolute_run(run)
        self._every_s = every_s
        self._at = float("-inf")
        self._readings: list[Reading] = []
        self._earlier: dict[str, _Earlier] = {}
        self._live = LiveRanks(self._segments)

    def readings(self) -> list[Reading]:
        """Never fails: what cannot be read is left out."""
        now = _core.now_s()
        if now - self._at >= self._every_s:
            paths = self._segments()
            if self._run is not None:
                self._live.follow()
            live = {one.loader: one for one in self._live.look()}
            self._readings = [
                reading._replace(live=live.get(reading.report.loader))
                for path in paths
                for reading in self._read(path, now)
            ]
            self._earlier = {path: self._earlier[path] for path in paths if path in self._earlier}
            self._at = now
        return self._readings

    def reports(self) -> list[Report]:
        """Reports of the whole run; like `readings`."""
        return [reading.report for reading in self.readings()]

    def _read(self, path: str, now: float) -> list[Reading]:
        try:
            image = _core.SegmentImage(path)
            earlier = self._earlier.setdefault(path, _Earlier(image, now))
            since = earlier.since(image, now)
            session = _core.current_session()
            run = self._run or ("" if session is None else session.run)
            return [_reading(image, entry["index"], since, run) for entry in image.loaders()]
        except Error:
            return []  # a segment that is being written for the first time, or has just gone

    def _segments(self) -> list[str]:
        if self._run is None:
            session = _core.current_session()
            return [session.live_path] if session is not None and session.live_path else []
        try:
            return [segment["path"] for segment in _core.find_segments(self._run)]
        except Error:
            return []


class _Earlier:
    """Two images of a segment, `_RECENT_S` apart or more: the recent figures begin at the older one."""

    def __init__(self, image: _core.SegmentImage, now: float) -> None:
        self._older: _core.SegmentImage | None = None
        self._newer = image
        self._taken_s = now

    def since(self, image: _core.SegmentImage, now: float) -> _core.SegmentImage | None:
        """None: the run is not much older than a minute, as far as this reader knows."""
        if now - self._taken_s >= _RECENT_S:
            self._older, self._newer, self._taken_s = self._newer, image, now
        return self._older


def _reading(image: _core.SegmentImage, index: int, since: _core.SegmentImage | None, run: str) -> Reading:
    report = Report(with_run_files(image.profile_json(index), run, image))
    if since is None or index >= len(since.loaders()):
        return Reading(report, report)
    return Reading(report, Report(image.profile_json(index, since)))


def reports_in(path: str) -> list[Report]:
    """A report for each loader in a segment; empty if it cannot be read."""
    try:
        entries: list[dict[str, Any]] = _core.segment_loaders(path)
        return [Report(_core.segment_profile_json(path, entry["index"])) for entry in entries]
    except Error:
        return []  # a segment that is being written for the first time, or has just gone
