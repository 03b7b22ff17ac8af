"""`autopilot`: between epochs, the user's function makes the loader with the settings predicted to be best.

Proposals are those of `tune`, from the recording of the epochs so far. A setting stays if its steps are
shorter beyond chance. All of it runs on the caller's thread, when an epoch begins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Generic, TypeVar

from headrace.common.handlers import let_through
from headrace.common.launcher import speaks_for_job
from headrace.common.loader_names import unnumbered
from headrace.common.messages import say
from headrace.common.plain import typed_error_line
from headrace.errors import Error, UsageError
from headrace.loaders.kit.names import object_name
from headrace.loaders.wrap import handle_of, wrap
from headrace.predict.comparison import Comparison
from headrace.predict.search import Candidate, Changes, Measured, Proposals, Trial
from headrace.record.hooks import phased_loops
from headrace.record.session import enabled
from headrace.results import autopilot_record
from headrace.results.figures import ParameterChange
from headrace.results.report import Report, report_of_loop
from headrace.traces.table_text import seconds

T = TypeVar("T")

#: Steps before settings are judged: with fewer, the interval of a comparison is wider than most gains. Where
#: it still contains 1, the settings run for four times as many, which halves the interval.
_STEPS = 48
_UNCLEAR = 4
#: A trial costs an epoch of a slower loader if the prediction is wrong, so smaller gains are not tried.
_MIN_GAIN = 0.05
#: Two trials in vain show that predictions are wrong here; eight are more than `tune` needs for a loader.
_MAX_TRIALS = 8
_MAX_IN_VAIN = 2
#: Share of the free memory that a trial may take: the program's own use may still grow.
_OF_MEMORY = 0.25
#: Batches of unknown size are expected to need no more shared memory than this.
_UNKNOWN_BATCHES = 1 << 30
#: Seconds to start a worker process, if the recording has seen none.
_WORKER_STARTS_S = 0.03


class _UnusableError(Exception):
    """Settings with which the loader cannot be made, or with which its loop does not begin."""


class Autopilot(Generic[T]):
    """A loader that ``make`` may make again between epochs. Every ``for`` over it is an epoch."""

    def __init__(self, make: Callable[..., Iterable[T]], settings: Changes) -> None:
        self._make = make
        self._settings = dict(settings)
        self._loader: Any = self._recorded(self._settings)
        self._on_trial = False
        self._search = self._trials(dict(settings))
        _, self._needs = next(self._search)
        if not enabled() or phased_loops():
            self._needs = math.inf

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of ``make`` for the current loader."""
        return dict(self._settings)

    @property
    def loader(self) -> Any:
        """The current loader, of the class that ``make`` returned. The next epoch may have another one."""
        return self._loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[T]:
        handle = handle_of(self._loader)
        if handle is not None and handle.steps >= self._needs:
            try:
                wanted = self._search.send(report_of_loop(handle))
            except Exception as error:  # the loop goes on as it is
                let_through(error)
                self._needs, self._on_trial = math.inf, False
                self._say(f"nothing more is tried ({typed_error_line(error)})")
            else:
                try:
                    self._use(*wanted)
                except Exception as error:
                    self._put_back(error, f"{object_name(self._make)} failed")
        try:
            return iter(self._loader)
        except Exception as error:
            self._put_back(error, "its loop did not begin")
        return iter(self._loader)

    def report(self, epoch: int | None = None) -> Report:
        """The report of the current loader: all epochs, or one (1 the first, -1 the last; four are kept)."""
        handle = handle_of(self._loader)
        if handle is None:
            raise Error("nothing was recorded of this loop")
        return report_of_loop(handle, epoch)

    # --- between two epochs ---

    def _trials(self, start: Changes) -> Generator[tuple[Changes, float], Report, None]:
        """Yields settings to use, and after how many steps to go on with the report of the loops over them.

        Settings on trial may be answered with an _UnusableError in place of the report.
        """
        best = Trial(start, {}, {}, Candidate({}), _measured((yield start, _STEPS)))
        proposals = Proposals(start.__contains__, _cost, _MIN_GAIN)
        proposals.tried = [start]
        in_vain = 0
        for _ in range(_MAX_TRIALS):
            report = best.measured.report
            assert report is not None
            may_gain = report.profile.sink.compute_s < (1 - _MIN_GAIN) * best.step_s
            found = proposals.next(best) if may_gain and in_vain < _MAX_IN_VAIN else None
            if found is None:
                break
            settings = {**best.settings, **found.changes}
            proposals.tried.append(settings)
            change = self._begin_trial(best, found)
            try:
                now = Trial(settings, found.changes, {}, found, _measured((yield settings, _STEPS)))
                kept, says = _judged(best, now, change)
                if kept is None:
                    now.measured = _measured((yield settings, _UNCLEAR * _STEPS))
                    kept, says = _judged(best, now, change)
            except _UnusableError as error:
                self._end_trial(change, False, str(error))
                in_vain += 1
                yield best.settings, _STEPS
                continue
            proposals.learn(found, now.measured)
            self._end_trial(change, bool(kept), says)
            best, in_vain = (now, 0) if kept else (best, in_vain + 1)
        yield best.settings, math.inf

    def _begin_trial(self, best: Trial, found: Candidate) -> ParameterChange:
        handle = handle_of(self._loader)
        assert handle is not None
        change = ParameterChange(
            loader=handle.name,
            step=handle.steps,
            parameter=", ".join(found.changes),
            from_value=", ".join(str(best.settings[name]) for name in found.changes),
            to_value=", ".join(map(str, found.changes.values())),
            predicted_step_s=found.predicted_s,
            outcome="tried",
        )
        autopilot_record.add(handle.session, change)
        self._on_trial = True
        return change

    def _end_trial(self, change: ParameterChange, kept: bool, why: str) -> None:
        self._on_trial = False
        change.outcome, change.says = "kept" if kept else "put_back", why
        predicted = f", predicted {seconds(change.predicted_step_s)}" if change.predicted_step_s else ""
        said = f"{change.parameter} {change.from_value} -> {change.to_value} {'kept' if kept else 'put back'}"
        self._say(f"{said}: {why}{predicted}")
        handle = handle_of(self._loader)
        if handle is not None:
            autopilot_record.save(handle.session)

    def _put_back(self, error: Exception, problem: str) -> None:
        """The best settings again, if others are on trial; else raises the error, which is being handled."""
        let_through(error)
        if not self._on_trial:
            raise error
        why = f"{problem} ({typed_error_line(error)})"
        self._use(*self._search.throw(_UnusableError(why)))

    def _use(self, settings: Changes, needs: float) -> None:
        """Makes the loader of these settings, unless it is the current one."""
        if settings != self._settings:
            earlier, self._loader = handle_of(self._loader), self._recorded(settings)
            self._settings = settings
            if earlier is not None:
                earlier.note("superseded", "yes")  # a run's report is of the last one
        self._needs = needs

    def _recorded(self, settings: Changes) -> Any:
        made = self._make(**settings)
        if handle_of(made) is not None:
            return made  # a pipeline, or what the user has wrapped
        name = object_name(self._make)
        return wrap(made, name=None if name == "<lambda>" else name)

    def _say(self, what: str) -> None:
        handle = handle_of(self._loader)
        if handle is not None and speaks_for_job():
            say(f"autopilot: {unnumbered(handle.name)}: {what}")


def _judged(best: Trial, now: Trial, change: ParameterChange) -> tuple[bool | None, str]:
    """Whether the steps are shorter than the best ones, and why; None: more steps may show it."""
    before, after = ([one.measured.report] if one.measured.report else [] for one in (best, now))
    step = Comparison(before, after).step
    change.before_step_s, change.after_step_s = best.step_s, now.step_s
    change.low, change.high = step.low, step.high
    took = f"{seconds(best.step_s)} -> {seconds(now.step_s)} a step"
    if step.ratio >= 1 or now.step_s >= best.step_s:
        return False, took
    return (True, took) if step.changed else (None, f"{took}, which may be chance")


def _loop_start(report: Report) -> tuple[float, int]:
    """Seconds until a loop has its first batch, and the steps of a loop."""
    profile = report.profile
    loops = max(1, profile.epochs)
    start_s = (profile.startup.first_batch_s + profile.startup.later_epochs_s) / loops
    return start_s, max(1, profile.sink.steps // loops)


def _measured(report: Report) -> Measured:
    """Steps with their part of what the beginning of a loop costs."""
    start_s, steps = _loop_start(report)
    return Measured(report.profile.sink.step_s + start_s / steps, 0.0, report)


def _cost(report: Report, changes: Changes) -> float:
    """Seconds a step that more worker processes take to start; infinite if memory or cores do not suffice."""
    profile = report.profile
    if profile.model is None:
        return 0.0
    sets = {one.sets: one for one in profile.model.parameters}
    workers, window, wanted, longer = (
        int((now.get(sets[kind].name, sets[kind].value) or least) if kind in sets else least)
        for now in ({}, changes)
        for kind, least in (("workers", 0), ("window", 2))
    )
    if workers and all(stage.runs_in != "process" for stage in profile.model.stages):
        return 0.0  # threads
    more, batches = wanted - workers, wanted * longer - workers * window
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    if more > 0 and ranks > 1 and wanted > max(1, len(os.sched_getaffinity(0)) // ranks):
        return math.inf
    free, size = _free_shared_memory(), profile.sink.batch_bytes
    if batches > 0 and (batches * size > _OF_MEMORY * free if size else free < _UNKNOWN_BATCHES):
        return math.inf
    memory = profile.host.available_memory
    needs = more * (profile.host.memory or 0) / (workers + 1)
    if more > 0 and memory is not None and needs > _OF_MEMORY * memory:
        return math.inf
    if more <= 0 or ("keeps_workers" in sets and sets["keeps_workers"].value):
        return 0.0
    start_s, steps = _loop_start(report)
    return float(more * (start_s / workers if workers else _WORKER_STARTS_S) / steps)


def _free_shared_memory() -> float:
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return math.inf
    return float(found.f_bavail * found.f_frsize)


def autopilot(make: Callable[..., Iterable[T]], /, **settings: Any) -> Autopilot[T]:
    """Loaders for a training of several epochs, whose settings Headrace chooses between epochs.

    ``loaders = hr.autopilot(make, num_workers=0, prefetch_factor=2)``, then ``for batch in loaders`` for each
    epoch. make: a function of yours that returns a new loader for these keyword arguments. settings: what the
    first loader is made with; of these, the ones that the loader's model names (`Report.what_if`) are tried.

    After 48 steps or more, the settings that are predicted to be fastest are used for the next epoch, and
    kept if its steps are shorter beyond chance. A line on stderr says each decision, and so does the report.
    If ``make`` raises for settings on trial, the loop goes on with the best ones; all other exceptions are
    yours.

    Raises UsageError for a ``make`` that cannot be called and for no settings, and what ``make`` and `wrap`
    raise. With HEADRACE=0 nothing is recorded or tried.
    """
    if not callable(make):
        raise UsageError(
            f"autopilot takes a function that makes the loader, not a {type(make).__name__}: "
            "hr.autopilot(make, num_workers=0)"
        )
    if not settings:
        raise UsageError("autopilot needs the settings to begin with: hr.autopilot(make, num_workers=0)")
    return Autopilot(make, settings)
