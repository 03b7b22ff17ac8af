"""The ranks of a run while it goes on: exposed wait of the last minute, who ended or is silent, stragglers.

All of it is differences of the counters in the ranks' segments, so it costs the recorded processes nothing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.handlers import start_without_signals
from headrace.errors import Error
from headrace.results.sentences import share
from headrace.traces.table_text import seconds

_WINDOW_S = 60.0
#: Copies of ranks on other machines are up to 5 s old.
_SILENT_S = 30.0
#: A shorter GetNext is not said.
_STALLED_S = 10.0
#: Between two looks of `LiveRanks.follow`, and how long it goes on when nobody asks.
_LOOK_EVERY_S = 1.0
_UNASKED_S = 30.0
#: Share of a core that its thread uses at most: looks at very many ranks are rarer.
_MAX_CORES = 0.05


class RankLive(NamedTuple):
    """One rank's loop now. Times are seconds, shares 0 to 1."""

    rank: int
    #: Share of the last `over_s` that the loop waited in GetNext, unless its device hid that.
    exposed_wait: float
    #: A minute; less where less is known, up to two where looks are rare.
    over_s: float
    #: How long the current GetNext has lasted; 0: there is none.
    stalled_s: float
    #: Since the rank's counters were last seen to be written; 0 for a process of this machine that runs.
    silent_s: float
    #: Its recording was closed.
    ended: bool
    totals: _core.LoopTotals

    @property
    def counts(self) -> bool:
        """It is one of those that the slowest is chosen from: it still reports, and something is known."""
        return not self.ended and not self.totals.died and self.silent_s < _SILENT_S and self.over_s > 0


class Straggler(NamedTuple):
    """A rank that the others wait for, as declared in analysis/cluster/straggler_watch.h."""

    rank: int
    #: More often the slowest than chance explains; else a one-off, so far.
    chronic: bool
    z: float
    #: Blocks of about a second in which it was the slowest, of so many.
    slowest: int
    blocks: int
    #: A step, and as a share of the job's step.
    late_s: float
    late_share: float
    #: "input", "computation" or "step".
    by: str

    def __str__(self) -> str:
        kind = "straggler" if self.chronic else "one-off, so far"
        by = "" if self.by == "step" else f" by its {self.by}"
        return (
            f"{kind}: rank {self.rank} is {seconds(self.late_s)} a step ({share(self.late_share)}) later "
            f"than the others{by}: slowest in {self.slowest} of the last {self.blocks} blocks, z {self.z:.1f}"
        )


class LoopLive(NamedTuple):
    """One loader on all of its ranks now."""

    loader: str
    ranks: list[RankLive]
    straggler: Straggler | None

    @property
    def slowest(self) -> RankLive | None:
        """The rank with the largest exposed wait; None if no rank reports."""
        return max((one for one in self.ranks if one.counts), key=lambda one: one.exposed_wait, default=None)

    @property
    def headline(self) -> str:
        """The first figure: exposed wait of the slowest rank over the last minute; "" if nothing is known."""
        slowest = self.slowest
        if slowest is None:
            return ""
        is_minute = abs(slowest.over_s - _WINDOW_S) < 0.1 * _WINDOW_S
        over = "minute" if is_minute else f"{max(1, slowest.over_s):.0f} s"
        counted = sum(one.counts for one in self.ranks)
        who = f", rank {slowest.rank}, the slowest of {counted}" if counted > 1 else ""
        return f"exposed wait {share(slowest.exposed_wait)} of the last {over}{who}"

    @property
    def alerts(self) -> list[str]:
        """A line each: a straggler, ranks that are stalled, silent, or ended while others go on."""
        lines = [str(self.straggler)] if self.straggler else []
        for one in self.ranks:
            if one.totals.died:
                lines.append(f"rank {one.rank} is gone: its process ended without closing its recording")
            elif one.silent_s >= _SILENT_S and not one.ended:
                lines.append(f"rank {one.rank} has not reported for {one.silent_s:.0f} s")
            elif one.stalled_s >= _STALLED_S:
                lines.append(f"rank {one.rank} waits in GetNext for {one.stalled_s:.0f} s")
        ended = [str(one.rank) for one in self.ranks if one.ended]
        if ended and any(one.counts for one in self.ranks):
            lines.append(f"ended, and in no figure: rank {', '.join(ended)}")
        return lines


class LiveRanks:
    """Looks at the segments of a run. Thread-safe."""

    def __init__(self, segments: Callable[[], Iterable[str]]) -> None:
        """segments: paths that are there now, the newest of a rank last; it may raise Error."""
        self._segments = segments
        self._lock = threading.Lock()
        #: By loader and rank: looks, oldest first, and when the newest was first seen.
        self._looks: dict[tuple[str, int], deque[_core.LoopTotals]] = {}
        self._changed_s: dict[tuple[str, int], float] = {}
        self._watches: dict[str, _core.StragglerWatch] = {}
        self._stragglers: dict[str, dict[str, Any] | None] = {}
        self._asked_s = float("-inf")
        self._follows = False

    def look(self) -> list[LoopLive]:
        """The loops now. Never fails: what cannot be read is left out."""
        with self._lock:
            now_s = self._asked_s = _core.now_s()
            self._read(now_s)
            return [self._loop(name, now_s) for name in sorted({name for name, _ in self._looks})]

    def of_loader(self, name: str) -> LoopLive:
        """The loops of that loader now."""
        return next((one for one in self.look() if one.loader == name), LoopLive(name, [], None))

    def follow(self) -> None:
        """Look every second in a thread, as stragglers need, until nobody has asked for half a minute."""
        with self._lock:
            if self._follows:
                return
            self._follows = True
        start_without_signals(threading.Thread(target=self._follow, name="headrace-live", daemon=True))

    def _follow(self) -> None:
        took_s = 0.0
        while True:
            time.sleep(max(_LOOK_EVERY_S, took_s / _MAX_CORES))
            began_s = time.thread_time()
            with self._lock:
                now_s = _core.now_s()
                if now_s - self._asked_s > _UNASKED_S:
                    self._follows = False
                    return
                self._read(now_s)
            took_s = time.thread_time() - began_s

    # --- locked ---

    def _read(self, now_s: float) -> None:
        newest: dict[tuple[str, int], _core.LoopTotals] = {}
        for path in self._paths():
            newest |= _totals_in(path)
        for key, totals in newest.items():
            looks = self._looks.setdefault(key, deque())
            if looks and (totals.steps < looks[-1].steps or totals.wait_s < looks[-1].wait_s - 1e-6):
                looks.clear()  # the rank began again
            if not looks or totals.at_s != looks[-1].at_s:
                self._changed_s[key] = now_s
            looks.append(totals)
            while len(looks) > 2 and looks[1].at_s <= totals.at_s - _WINDOW_S:
                looks.popleft()
        self._looks = {key: looks for key, looks in self._looks.items() if key in newest}
        for name in {name for name, _ in newest}:
            ranks = [totals for (of, _), totals in sorted(newest.items()) if of == name]
            if len(ranks) > 1:
                watch = self._watches.setdefault(name, _core.StragglerWatch())
                self._stragglers[name] = watch.look(now_s, ranks)

    def _paths(self) -> list[str]:
        try:
            return list(self._segments())
        except Error:
            return []  # the run is gone

    def _loop(self, name: str, now_s: float) -> LoopLive:
        ranks = [self._rank(key, now_s) for key in sorted(self._looks) if key[0] == name]
        found = self._stragglers.get(name)
        return LoopLive(name, ranks, Straggler(**found) if found else None)

    def _rank(self, key: tuple[str, int], now_s: float) -> RankLive:
        looks = self._looks[key]
        now = looks[-1]
        looked_s = now.at_s - looks[0].at_s
        # The newest steps where looks are too new, or too far apart to show the last minute.
        since = looks[0] if min(now.recent_s, _WINDOW_S - 1) <= looked_s <= 2 * _WINDOW_S else None
        exposed, over_s = _core.exposed_wait(since, now)
        silent_s = 0.0 if now.running else now_s - self._changed_s[key]
        return RankLive(key[1], exposed, over_s, now.stalled_s, silent_s, now.ended, now)


def _totals_in(path: str) -> dict[tuple[str, int], _core.LoopTotals]:
    """By loader and rank."""
    try:
        image = _core.SegmentImage(path)
        found = ((one["name"], _core.loop_totals(image, one["index"])) for one in image.loaders())
        return {(name, totals.rank): totals for name, totals in found}
    except Error:
        return {}  # it is being written for the first time, or has just gone


def segments_of(run: str) -> list[str]:
    """The segments of a run folder, for `LiveRanks`."""
    return [segment["path"] for segment in _core.find_segments(run)]


def local_segments() -> list[str]:
    """The segments of the current session's run whose processes run on this machine. Reading them is fast."""
    session = _core.current_session()
    if session is None or not session.live_path:
        return []
    found = [one["path"] for one in _core.find_segments(session.run) if one["running"]] if session.run else []
    return found or [session.live_path]
