"""One loop as looks see it, and time outside of steps and waits, summed by what it was for."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections import Counter, deque
from types import CodeType
from typing import Any

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.record.budget.stacks import Place
from headrace.results import process_files

#: A step is long from so many usual ones, and that time, on; the first steps tell what is usual.
_TIMES_AS_LONG = 5
#: The same, where it is seen that it evaluates, saves or logs.
_TIMES_KNOWN = 3
_MIN_S = 0.1
_MIN_EARLY_S = 0.4
_FEWEST_STEPS = 8
_FEWEST_RATES = 3
_KEPT = 64
_USUAL = 0.25
#: Looks into long steps, and such steps, until the call is told to the verdicts.
_SAMPLES = 6
_LONG_STEPS = 2


class Loop:
    """By one thread at a time."""

    def __init__(self, handle: _core.LoaderHandle) -> None:
        self._handle = weakref.ref(handle)
        self.name = handle.name
        #: 0: not known.
        self.thread = 0
        self.runs = False
        #: Steps of all loops before this one.
        self.steps_at_begin = -1
        #: The code of the function that has the loop.
        self.code: CodeType | None = None
        #: Loops begun before this one.
        self.order = 0
        self.steps = handle.steps
        #: Steps that were complete when the one that goes on began.
        self.computes = handle.computes
        # These tell training from evaluation.
        self.without_gradients = False
        self.called_evaluation = False
        self.trained = False
        #: Loops in one of whose steps it began, and which step.
        self.outer: weakref.WeakKeyDictionary[_core.LoaderHandle, int] = weakref.WeakKeyDictionary()
        self.zipped = False
        self._since = _core.now_s()
        self._collected_s = _core.collections_s()
        self._began_steps = self.steps
        #: The mean step, its wait included, at each of the last looks that found more batches.
        self._rates: deque[float] = deque(maxlen=_KEPT)
        self._long: set[int] = set()
        self._early: dict[int, tuple[Place, float]] = {}  # before it is known what is usual
        #: Places of the step that goes on, if it is a long one; the last one; and that of a usual step.
        self._paused: dict[Place, float] = {}
        self._paused_at: Place | None = None
        self.seen_at = ""
        self._seen: Counter[str] = Counter()

    @property
    def handle(self) -> _core.LoaderHandle | None:
        return self._handle()

    @property
    def is_running(self) -> bool:
        """Now, not when it was last looked at."""
        handle = self.handle
        return handle is not None and handle.active > 0

    @property
    def kind(self) -> str:
        """ "zipped" (its steps are another loop's), "training", "evaluation", or "" where nothing tells."""
        if self.zipped:
            return "zipped"
        if self.trained:
            return "training"
        return "evaluation" if self.without_gradients or self.called_evaluation or self.outer else ""

    def note_zipped(self) -> None:
        """A loop in a step of another one is over before that goes on; ``zip`` takes from both."""
        self.zipped |= any(outer.active > 0 and outer.steps > step for outer, step in self.outer.items())

    def leave_out(self, now: float) -> None:
        """The time since the last change is of no step."""
        self._since = now

    def begin(self, now: float, order: int) -> None:
        """Another loop: the time since the last one is of no step."""
        handle = self.handle
        self.runs, self.order = True, order
        self.steps_at_begin = -1 if handle is None else handle.steps
        self.leave_out(now)

    def skip(self, seconds: float) -> None:
        """A loop in one of its steps has run."""
        self._since += seconds

    def took(self, now: float, steps: int, computes: int) -> None:
        """More batches since the last look."""
        if not self.was_long:
            self._rates.append((now - self._since) / (steps - self.steps))
        self.steps, self._since, self.seen_at = steps, now, ""
        self.computes, self._collected_s = computes, _core.collections_s()

    @property
    def was_long(self) -> bool:
        """The step that goes on."""
        return self.steps in self._long or self.steps in self._early

    def paused(self, more_s: float) -> list[tuple[Place, float]]:
        """The places of a long step with their seconds, returned once. more_s: for the last place."""
        if self._paused_at is not None:
            self._paused[self._paused_at] += more_s
        found = list(self._paused.items())
        self._paused.clear()
        self._paused_at = None
        return found

    def is_long(self, now: float, part: str | None = None) -> bool:
        """Whether the step that goes on is. part: what it is for; None: it may be for one that is known."""
        usual_s = self._usual_s()
        if usual_s is None:
            return now - self._since >= _MIN_EARLY_S
        return now - self._since >= max(_MIN_S, (_TIMES_AS_LONG if part == "" else _TIMES_KNOWN) * usual_s)

    def collects(self, now: float) -> bool:
        """Whether the step that goes on is mostly Python's garbage collector, in whatever function."""
        return _core.collections_s() - self._collected_s > (now - self._since) / 2

    def pause(self, place: Place, now: float, seconds: float) -> bool:
        """The step is at ``place``, as at the last look, ``seconds`` ago. Whether it is known to be long.

        At the first look into a step all of its time counts. It began about half a look before it was seen.
        """
        new_s = seconds if self.was_long else now - self._since + seconds / 2
        if self._usual_s() is None:
            earlier = self._early.get(self.steps)
            self._early[self.steps] = (place, new_s + (0.0 if earlier is None else earlier[1]))
            return False
        self._long.add(self.steps)
        self._paused[place] = self._paused.get(place, 0.0) + new_s
        self._paused_at = place
        return True

    def tell_verdicts(self, function: str) -> None:
        """The record of the loader has ``pauses_in`` once it is known."""
        self._seen[function] += 1
        handle = self.handle
        if handle is not None and self._seen.total() >= _SAMPLES and len(self._long) >= _LONG_STEPS:
            handle.note("pauses_in", self._seen.most_common(1)[0][0])

    def early(self) -> list[tuple[Place, float, int]]:
        """First steps that turned out to be long: place, seconds, step. Each is told once."""
        usual_s = self._usual_s()
        if usual_s is None:
            return []
        least_s = max(_MIN_S, _TIMES_AS_LONG * usual_s)
        found = [(place, time_s, step) for step, (place, time_s) in self._early.items() if time_s >= least_s]
        self._long.update(self._early)
        self._early.clear()
        return found

    def _usual_s(self) -> float | None:
        """How long a step usually takes: the lower quartile of the means between two looks."""
        if self.steps - self._began_steps < _FEWEST_STEPS or len(self._rates) < _FEWEST_RATES:
            return None
        return sorted(self._rates)[int(_USUAL * len(self._rates))]


#: Places that are told apart.
_MOST = 500


class _Spent:
    """At one place: how long, how often, and at which training steps it began."""

    __slots__ = ("seconds", "times", "first_step", "last_step", "gaps", "occasion")  # noqa: RUF023 - as saved

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
        if self.is_over:
            return
        places = [
            {
                "phase": phase,
                **place._asdict(),
                **{name: getattr(spent, name) for name in _Spent.__slots__ if name != "occasion"},
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
