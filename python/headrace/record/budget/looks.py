"""Looks at the thread of the training loop: 20 a second, later 4.

Steps and waits are counted exactly elsewhere. Looked at is the rest: before the first loop, between two
loops, and in steps that take many times as long as the others. The stack then tells what the time is for.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.common.sampling_thread import run_steps
from headrace.common.users_files import is_the_users
from headrace.record.budget import stacks
from headrace.record.budget.loop import Budget, Loop
from headrace.record.budget.stacks import Call, Place
from headrace.record.hooks import phased_loops
from headrace.results.process_files import before_reading

#: Kinds of loops whose steps are no training steps of their own.
_NO_STEPS = ("evaluation", "zipped")
#: Between two looks, at first and after so many of them.
_PERIOD_S = 0.05
_LATER_PERIOD_S = 0.25
_LATER_AFTER = 6_000
#: A process that has no loader by then (half an hour) has none.
_MOST_WITHOUT_LOADER = 12_000
#: Between two looks into steps and at other threads, and two writes of the file.
_RARE_S = 0.25
_SAVE_S = 2.0
#: Stacks before the first loop that are told apart.
_MOST_STACKS = 500
_STACK_DEPTH = 16
#: The most places of usual steps.
_MOST_PLACES = 32


class Looks:
    """For one run of the process. By one thread at a time, except `begins`."""

    def __init__(self) -> None:
        self.budget: Budget | None = None
        self._loops: list[Loop] = []
        self._order = 0
        self._gone_steps = 0
        self._thread = threading.main_thread().ident or 0
        #: The functions that call the loops.
        self._trunk: set[CodeType] = set()
        self._began = self._last = _core.now_s()
        #: Before the first loop: seconds by stack, until it is known what calls loops; None: it has begun.
        self._before: dict[tuple[Call, ...], float] | None = {}
        #: Seconds by place, of the gap between two loops that goes on.
        self._gap: dict[Place, float] = {}
        self._gaps = 0
        #: Functions that usual steps were seen in: a long step in one of them is not a pause.
        self._usual_places: set[str] = set()
        self._rare_at = self._saved_at = self._began
        self._rare_steps = 0
        self._rare_saves = self._disturbed = False

    def add(self, handle: _core.LoaderHandle) -> None:
        """A loader of the run is recorded from now on. The first run of a script begins with its process."""
        if self.budget is None:
            began = _process_began(self._began) if not _earlier and _is_a_script() else self._began
            self.budget = Budget(handle.session, began, self._began - began)
        self._loops.append(Loop(handle))

    def are_of(self, run: str) -> bool:
        """Whether they are for this run, or for none yet."""
        return self.budget is None or (self.budget.run == run and not self.budget.is_over)

    @property
    def is_done(self) -> bool:
        """No loader of the run is left."""
        return self.budget is not None and not any(loop.handle is not None for loop in self._loops)

    def begins(self, handle: _core.LoaderHandle) -> None:
        """A loop over ``handle``, on this thread."""
        loop = next((each for each in self._loops if each.handle is handle), None)
        if loop is None:
            return
        loop.thread = threading.get_ident()
        torch = sys.modules.get("torch")
        loop.without_gradients |= torch is not None and not torch.is_grad_enabled()
        if loop.runs and loop.steps_at_begin == handle.steps:
            return  # seen already, or told by an iterator and by what it is in
        self._begin(loop, stacks.calls_of(loop.thread))

    def _begin(self, loop: Loop, stack: list[Call]) -> None:
        calls = stacks.loop_in(stack, loop.code)
        loop.code = calls[-1].code if calls else None
        if loop.thread and loop.thread != self._thread:
            if any(each.runs or each.steps for each in self._loops if each.thread in (0, self._thread)):
                loop.runs = True
                return  # it runs beside the training loop
            self._thread = loop.thread
        evaluation = stacks.evaluates(calls)
        loop.called_evaluation |= evaluation is not None
        for each in self._loops:
            outer = each.handle
            if outer is not None and each.is_running and each is not loop and not self._is_beside(each):
                loop.outer[outer] = outer.steps
        self._loop_is_over(loop)
        self._order += 1
        loop.begin(_core.now_s(), self._order)
        self._trunk.update(call.code for call in calls[:evaluation])
        step = self._training_steps()
        self._end_gap(step)
        if self.budget is not None:
            self.budget.begins(loop.name, step)
            self.budget.loops[loop.name]["function"] = stacks.caller_of(calls)

    def _in_gap(self, place: Place, seconds: float) -> None:
        self._gap[place] = self._gap.get(place, 0.0) + seconds

    def _in_pause(self, loop: Loop, place: Place, seconds: float) -> None:
        if self.budget is not None:
            self.budget.add("pause", place, seconds, (loop.order, loop.steps), self._training_steps())

    def _is_beside(self, loop: Loop) -> bool:
        return loop.thread not in (0, self._thread)

    def _training_steps(self) -> int:
        return self._gone_steps + sum(each.steps for each in self._loops if each.kind not in _NO_STEPS)

    def _end_gap(self, step: int) -> None:
        budget = self.budget
        if budget is None:
            return
        if self._before is not None:
            for calls, seconds in list(self._before.items()):
                place = stacks.place_of(calls, self._trunk)
                if place is not None:
                    budget.add("before", place, seconds, 0, 0)
            self._before = None
        gap, self._gap = self._gap, {}
        for place, seconds in list(gap.items()):
            budget.add("between", place, seconds, self._gaps, step)
        self._gaps += 1

    # --- a look ---

    def go_on(self) -> None:
        """Looks begin, or begin again."""
        self._last = _core.now_s()

    def look(self) -> None:
        now = _core.now_s()
        seconds, self._last = now - self._last, now
        loop = self._running()
        if loop is None:
            self._look_outside(seconds)
        else:
            self._look_inside(loop, now, seconds)
            for outer in self._loops:
                if outer.runs and outer is not loop and not self._is_beside(outer):
                    outer.skip(seconds)
        if now - self._rare_at >= _RARE_S and self.budget is not None:
            self._look_rarely(loop, now)
        if now - self._saved_at >= _SAVE_S:
            self.save()

    def _running(self) -> Loop | None:
        """The innermost loop on the thread; None: it is outside of them."""
        found = None
        for loop in list(self._loops):
            handle = loop.handle
            loop.note_zipped()
            if handle is None:
                self._loop_is_over(loop)
                self._loops.remove(loop)
                self._note_kind(loop)
                self._gone_steps += loop.steps if loop.kind not in _NO_STEPS else 0
                continue
            runs = loop.is_running
            if runs and not loop.runs:
                self._begin(loop, stacks.calls_of(loop.thread or self._thread))
            if loop.runs and not runs:
                self._loop_is_over(loop)
            loop.runs = runs
            if runs and not self._is_beside(loop) and (found is None or loop.order > found.order):
                found = loop
        return found

    def _look_outside(self, seconds: float) -> None:
        self._disturbed = True
        calls = stacks.calls_of(self._thread)
        if self._before is not None:
            key = tuple(calls[:_STACK_DEPTH])
            if key in self._before or len(self._before) < _MOST_STACKS:
                self._before[key] = self._before.get(key, 0.0) + seconds
            return
        place = stacks.place_of(calls, self._trunk)
        if place is not None:
            self._in_gap(place, seconds)

    def _look_inside(self, loop: Loop, now: float, seconds: float) -> None:
        handle = loop.handle
        if handle is None or self.budget is None:
            return
        if handle.steps != loop.steps:
            self._step_is_over(loop, now, handle.steps, seconds)
            return
        if not loop.is_long(now):
            return
        self._disturbed = True
        if handle.in_next[0]:
            loop.leave_out(now)  # a long wait for the input
            return
        calls = stacks.calls_of(self._thread)
        place = stacks.place_of(calls, self._trunk)
        if place is None:
            loop.leave_out(now)
            return
        if not loop.is_long(now, place.part):
            return
        if loop.collects(now):
            place = stacks.COLLECTOR
        if loop.pause(place, now, seconds) and (place.part or place.function not in self._usual_places):
            loop.tell_verdicts(place.function)

    def _step_is_over(self, loop: Loop, now: float, steps: int, seconds: float) -> None:
        """seconds: since the last look."""
        for place, paused_s in loop.paused(seconds / 2):  # it went on for half a look, on average
            self._in_pause(loop, place, paused_s)
        if loop.seen_at and not loop.was_long:
            self._usual_places.add(loop.seen_at)
        handle = loop.handle
        loop.took(now, steps, 0 if handle is None else handle.computes)

    def _loop_is_over(self, loop: Loop, program_ends: bool = False) -> None:
        """A loop that was left in the middle of a step: what it was in comes after the loop.

        A loader that is gone does not tell: its last step was whole, unless the program ends in it.
        """
        handle = loop.handle
        is_whole = not program_ends if handle is None else handle.computes > loop.computes
        for place, paused_s in loop.paused(0.0):
            if is_whole:
                self._in_pause(loop, place, paused_s)
            else:
                self._in_gap(place, paused_s)

    def _look_rarely(self, loop: Loop | None, now: float) -> None:
        """Whether the loop trains, and whether another thread saves a checkpoint beside it."""
        assert self.budget is not None
        steps = self._training_steps()
        if loop is not None:
            self._look_into_step(loop, now)
        saves = stacks.other_thread_saves(but=self._thread)
        beside = self.budget.beside
        beside["times"] += saves and not self._rare_saves
        seconds, new = now - self._rare_at, steps - self._rare_steps
        if not self._disturbed and saves == self._rare_saves and new >= 0:
            beside["seconds" if saves else "calm_seconds"] += seconds
            beside["steps" if saves else "calm_steps"] += new
        self._rare_at, self._rare_steps, self._rare_saves, self._disturbed = now, steps, saves, False

    def _look_into_step(self, loop: Loop, now: float) -> None:
        """Whether it trains, and where its usual steps are."""
        handle = loop.handle
        if handle is None or handle.in_next[0]:
            return
        calls = stacks.calls_of(self._thread)
        loop.trained |= stacks.trains(calls)
        if len(self._usual_places) < _MOST_PLACES:
            place = stacks.place_of(calls, self._trunk)
            loop.seen_at = "" if place is None else place.function

    def _note_kind(self, loop: Loop) -> None:
        if self.budget is not None and loop.name in self.budget.loops:
            known = self.budget.loops[loop.name]
            known["kind"] = loop.kind or known.get("kind", "")
            known["beside"] = self._is_beside(loop)

    def save_now(self, ends: bool = False) -> None:
        """On another thread than the one that looks. ends: the run is over."""
        try:
            for loop in list(self._loops) if ends else ():
                # A step that the program was left in, as by ``sys.exit``, is over.
                self._loop_is_over(loop, program_ends=True)
            self.save()
        except RuntimeError:  # changed by the thread that looks; the next one writes it
            pass

    def save(self) -> None:
        self._saved_at = now = _core.now_s()
        budget = self.budget
        if budget is None or self._before is not None:
            return
        for loop in list(self._loops):
            for place, seconds, step in loop.early():
                first = place if place.part else Place("", f"first steps of {loop.name}")
                budget.add("first", first, seconds, (loop.name, step), step)
            self._note_kind(loop)
        budget.save(now, dict(self._gap), self._usual_places)


def _is_a_script() -> bool:
    """Whether this process runs a program of the user's, from its beginning to its end."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return isinstance(file, str) and file.endswith(".py") and is_the_users(file)


def _process_began(now: float) -> float:
    """On the clock of `_core.now_s`; ``now`` where it is not known."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        # The kernel's ticks count from the start of the machine, suspended time included.
        boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
        return min(now, began - boot)
    except (OSError, ValueError, IndexError, AttributeError):
        return now


#: One for each run that has loaders. _earlier: the process has had another run.
_looks: tuple[Looks, ...] = ()
_earlier = False
_runs = False


def start() -> None:
    """Looks from now on. Idempotent; nothing in a trial, whose loops are changed."""
    global _looks, _runs
    if phased_loops():
        return
    if not _looks:
        _looks = (Looks(),)
    before_reading(_save, at_exit=_end)
    if not _runs:
        _runs = True
        run_steps(_look_on())


def loop_begins(handle: _core.LoaderHandle) -> None:
    """A loop over a recorded loader begins on this thread; see `Looks.begins`."""
    try:
        for looks in _looks:
            looks.begins(handle)
    except Exception as error:  # the loop must still run
        let_through(error)
        warn_once(f"where the run's time goes is not seen in full ({typed_error_line(error)})")


def _look_on() -> Iterator[float]:
    global _runs
    try:
        number = 0
        for looks in _looks:
            looks.go_on()
        while number < _MOST_WITHOUT_LOADER or any(looks.budget is not None for looks in _looks):
            yield _PERIOD_S if number < _LATER_AFTER else _LATER_PERIOD_S
            number += 1
            for looks in _looks:
                looks.look()
    except Exception:  # the interpreter ends, or a loop is not as expected: the rest is not seen
        pass
    _runs = False


def _save() -> None:
    for looks in _looks:
        looks.save_now()


def session_closes(session: _core.Session) -> None:
    """A run ends, if not the process."""
    for looks in _looks:
        if looks.budget is not None and looks.budget.run == session.run:
            looks.save_now(ends=True)
            looks.budget.is_over = True


def _end() -> None:
    for looks in _looks:
        looks.save_now(ends=True)


def loader_opened(handle: _core.LoaderHandle) -> None:
    """The process records a loader."""
    global _looks, _earlier
    if not _looks:
        return
    looks = next((each for each in _looks if each.are_of(handle.session.run)), None)
    if looks is None:
        _earlier = True
        looks = Looks()
        done = [each for each in _looks if each.is_done]
        for each in done:
            each.save_now(ends=True)
        _looks = (*(each for each in _looks if each not in done), looks)
    try:
        looks.add(handle)
    except OSError:  # too many open files: the loop is recorded without
        pass


def _forked() -> None:
    """A child's time is its own."""
    global _looks, _earlier, _runs
    _looks, _earlier, _runs = (), False, False


os.register_at_fork(after_in_child=_forked)
