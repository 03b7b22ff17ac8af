"""The loops over one loader: which of their steps take many times as long as the others, and what for."""

from __future__ import annotations

import time
import weakref
from collections import Counter
from types import CodeType

from headrace import _core
from headrace.record.budget.stacks import Place

#: A step is long from so many usual ones, and that time, on; the first steps tell what is usual.
_TIMES_AS_LONG = 5
_MIN_S = 0.1
_MIN_EARLY_S = 0.4
_FEWEST_STEPS = 8
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
        #: Of all loops before this one.
        self.steps_at_begin = -1
        #: Of the function that has the loop.
        self.code: CodeType | None = None
        #: Loops begun before this one.
        self.order = 0
        self.steps = handle.steps
        # What tells training from evaluation.
        self.without_gradients = False
        self.called_evaluation = False
        self.trained = False
        self.nested = False
        self._began = self._since = time.monotonic()
        self._began_steps = self.steps
        self._not_usual_s = 0.0  # long steps, long waits, and between two loops
        self._long: set[int] = set()
        self._early: dict[int, tuple[Place, float]] = {}  # before it is known what is usual
        self._paused_at: Place | None = None
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
        """ "training", "evaluation", or "" where nothing tells."""
        if self.trained:
            return "training"
        return "evaluation" if self.without_gradients or self.called_evaluation or self.nested else ""

    def leave_out(self, now: float) -> None:
        """The time since the last change is of no usual step."""
        self._not_usual_s += now - self._since
        self._since = now

    def begin(self, now: float, order: int) -> None:
        """Another loop: the time since the last one is of no step."""
        handle = self.handle
        self.runs, self.order = True, order
        self.steps_at_begin = -1 if handle is None else handle.steps
        self.leave_out(now)
        self._paused_at = None

    def took(self, now: float, steps: int) -> None:
        """More batches since the last look."""
        if self.steps in self._long or self.steps in self._early:
            self.leave_out(now)
        self.steps, self._since, self._paused_at = steps, now, None

    def paused_at(self) -> Place | None:
        """Where the step that goes on was seen, if it is a long one."""
        return self._paused_at

    def is_long(self, now: float) -> bool:
        """Whether the step that goes on is."""
        usual_s = self._usual_s()
        least_s = _MIN_EARLY_S if usual_s is None else max(_MIN_S, _TIMES_AS_LONG * usual_s)
        return now - self._since >= least_s

    def pause(self, place: Place, now: float, seconds: float) -> float:
        """The step is at ``place``. Returns the time there since the last look, which is ``seconds`` ago.

        At the first look into a step: all of its time. It began about half a look before it was seen.
        """
        known = self.steps in self._long or self.steps in self._early
        new_s = seconds if known else now - self._since + seconds / 2
        if self._usual_s() is None:
            earlier = self._early.get(self.steps)
            self._early[self.steps] = (place, new_s + (0.0 if earlier is None else earlier[1]))
            return 0.0
        self._long.add(self.steps)
        self._paused_at = place
        return new_s

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
        done = self.steps - self._began_steps - len(self._long) - len(self._early)
        if done < _FEWEST_STEPS:
            return None
        return max(0.0, self._since - self._began - self._not_usual_s) / done
