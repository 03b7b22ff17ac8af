"""Time outside of steps and waits, summed by what it was for, and its file in the run folder."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.record.budget.stacks import Place
from headrace.results import process_files

#: Places that are told apart.
_MOST = 500


class _Spent:
    """At one place: how long, how often, and at which training steps it began."""

    __slots__ = ("first_step", "gaps", "last_step", "occasion", "seconds", "times")

    def __init__(self) -> None:
        self.seconds = 0.0
        self.times = 0
        self.first_step = self.last_step = 0
        self.gaps = (0, 0)  #: Steps between two times: the fewest and the most.
        self.occasion: object = None

    def add(self, seconds: float, occasion: object, step: int) -> None:
        self.seconds += seconds
        if occasion != self.occasion:
            gap = step - self.last_step
            if self.times:
                self.gaps = (min(gap, self.gaps[0]), max(gap, self.gaps[1])) if self.times > 1 else (gap, gap)
            self.first_step = self.first_step if self.times else step
            self.last_step = step
            self.times += 1
            self.occasion = occasion


class Budget:
    """That of one run in this process. By one thread at a time."""

    def __init__(self, session: _core.Session, began: float, unseen_s: float) -> None:
        """began: on the clock of `_core.now_s`. unseen_s: from then to the first look."""
        self.run = session.run
        #: The run has ended, if not the process.
        self.is_over = False
        self._path = process_files.path_of("budget", session.run, session.rank, os.getpid())
        self._began = began
        self._unseen_s = unseen_s
        self._places: dict[tuple[str, Place], _Spent] = {}
        #: By the loader's name.
        self.loops: dict[str, dict[str, Any]] = {}
        #: Seconds and training steps while a checkpoint was written beside them, and without one.
        self.beside = {"times": 0, "seconds": 0.0, "steps": 0, "calm_seconds": 0.0, "calm_steps": 0}

    def add(self, phase: str, place: Place, seconds: float, occasion: object, step: int) -> None:
        """phase: "before", "between", "first", "pause". occasion: the gap or the step; each counts once."""
        if (phase, place) not in self._places and len(self._places) >= _MOST:
            place = Place(place.part, "")
        self._places.setdefault((phase, place), _Spent()).add(seconds, occasion, step)

    def begins(self, loader: str, step: int) -> None:
        """A loop over a loader, at a training step."""
        known = self.loops.setdefault(loader, {"times": 0, "first_step": step})
        known["times"] += 1
        known["last_step"] = step

    def save(self, until: float, open_gap: dict[Place, float], usual: set[str]) -> None:
        """Writes the file. open_gap: what no loop has followed yet. usual: places of usual steps."""
        import json  # costs more to import than the rest

        if self.is_over:
            return
        places = [
            {
                "phase": phase,
                **place._asdict(),
                "seconds": spent.seconds,
                "times": spent.times,
                "first_step": spent.first_step,
                "last_step": spent.last_step,
                "gaps": spent.gaps,
            }
            for (phase, place), spent in list(self._places.items())
            if phase != "pause" or place.part or place.function not in usual
        ]
        places += [
            {"phase": "after", **place._asdict(), "seconds": seconds, "times": 1}
            for place, seconds in open_gap.items()
        ]
        document = {
            "version": 1,
            "wall_s": until - self._began,
            "unseen_s": self._unseen_s,
            "loops": self.loops,
            "beside": self.beside,
            "places": places,
        }
        # Else a full disk, of which the recording itself tells, or there is no folder any more.
        with contextlib.suppress(OSError, ValueError):
            replace_file(self._path, json.dumps(document))
