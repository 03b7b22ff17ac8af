"""`autopilot`: between epochs, the user's function makes the loader with the settings predicted to be best.

Proposals are those of `tune`, from the recording of the epochs so far. A setting stays if its steps are
shorter beyond chance. All of it runs on the caller's thread, when an epoch begins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
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
from headrace.results.loader_model import LoaderParameter
from headrace.results.report import Report, report_of_loop

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


class Autopilot(Generic[T]):
    """A loader that ``make`` may make again between epochs. Every ``for`` over it is an epoch."""

    def __init__(self, make: Callable[..., Iterable[T]], settings: Changes) -> None:
        self._make = make
        self._settings = dict(settings)
        self._loader: Any = self._recorded(self._settings)
        self._proposals = Proposals(self._settings.__contains__, _cost, _MIN_GAIN)
        self._proposals.tried = [dict(settings)]
        self._best: Trial | None = None
        #: Candidate of the settings that are on trial, and its row in the report.
        self._tried: Candidate | None = None
        self._change = ParameterChange()
        self._trials = self._in_vain = 0
        self._needs = _STEPS
        self._done = not enabled() or phased_loops()

    @property
    def settings(self) -> dict[str, Any]:
        """What ``make`` was called with for the current loader."""
        return dict(self._settings)

    @property
    def loader(self) -> Any:
        """The current loader, of the class that ``make`` returned. The next epoch may have another one."""
        return self._loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[T]:
        if not self._done:
            self._decide()
        try:
            return iter(self._loader)
        except Exception as error:
            let_through(error)
            if self._tried is None:
                raise
            self._put_back(f"its loop did not begin ({typed_error_line(error)})")
        return iter(self._loader)

    def report(self, epoch: int | None = None) -> Report:
        """The report of the current loader: all epochs, or one (1 the first, -1 the last; four are kept)."""
        handle = handle_of(self._loader)
        if handle is None:
            raise Error("nothing was recorded of this loop")
        return report_of_loop(handle, epoch)

    # --- between two epochs ---

    def _decide(self) -> None:
        """Judge the settings of the last epochs, and choose those of the next one."""
        handle = handle_of(self._loader)
        if handle is None or handle.steps < self._needs:
            return
        try:
            report = report_of_loop(handle)
            self._judge(Measured(_whole_step(report), 0.0, report))
            wanted = self._settings if self._tried else self._proposed()
        except Exception as error:  # the loop goes on as it is
            let_through(error)
            self._done, self._tried = True, None
            self._say(f"nothing more is tried ({typed_error_line(error)})")
            return
        try:
            self._use(wanted)
        except Exception as error:
            let_through(error)
            if self._tried is None:
                raise
            self._put_back(f"{object_name(self._make)} failed ({typed_error_line(error)})")

    def _judge(self, measured: Measured) -> None:
        """Ends the trial that runs, unless more steps may show that it is faster."""
        if self._best is None:
            self._best = Trial(self._settings, {}, {}, Candidate({}), measured)
        if self._tried is None:
            return
        best, change = self._best, self._change
        step = Comparison([_report_of(best.measured)], [_report_of(measured)]).step
        change.before_step_s, change.after_step_s = best.step_s, measured.step_s
        change.low, change.high = step.low, step.high
        seems_faster = step.ratio < 1 and measured.step_s < best.step_s
        if seems_faster and not step.changed and self._needs == _STEPS:
            self._needs = _UNCLEAR * _STEPS
            return
        self._proposals.learn(self._tried, measured)
        took = f"{_ms(best.step_s)} -> {_ms(measured.step_s)} a step"
        if seems_faster and step.changed:
            self._best = Trial(self._settings, self._tried.changes, {}, self._tried, measured)
            self._end_trial("kept", took)
        else:
            self._end_trial("put_back", f"{took}, which may be chance" if seems_faster else took)

    def _proposed(self) -> Changes:
        """The settings to try in the next epoch; the best ones if nothing is worth a trial."""
        assert self._best is not None
        best = self._best
        report = _report_of(best.measured)
        exposed = 1 - report.profile.sink.compute_s / best.step_s if best.step_s > 0 else 0.0
        if exposed > _MIN_GAIN and self._trials < _MAX_TRIALS and self._in_vain < _MAX_IN_VAIN:
            self._tried = self._proposals.next(best)
        if self._tried is None:
            self._done = True
            return best.settings
        self._trials += 1
        self._needs = _STEPS
        changes = self._tried.changes
        wanted = {**best.settings, **changes}
        self._proposals.tried.append(wanted)
        handle = handle_of(self._loader)
        assert handle is not None
        self._change = ParameterChange(
            loader=handle.name,
            step=handle.steps,
            parameter=", ".join(changes),
            from_value=", ".join(str(best.settings[name]) for name in changes),
            to_value=", ".join(map(str, changes.values())),
            predicted_step_s=self._tried.predicted_s,
            outcome="tried",
        )
        autopilot_record.add(handle.session, self._change)
        return wanted

    def _put_back(self, why: str) -> None:
        """The trial's settings do not work, so the loader is made with the best ones again."""
        assert self._best is not None
        self._end_trial("put_back", why)
        self._use(self._best.settings)

    def _end_trial(self, outcome: str, why: str) -> None:
        change = self._change
        change.outcome, change.says = outcome, why
        self._in_vain = 0 if outcome == "kept" else self._in_vain + 1
        self._tried = None
        predicted = f", predicted {_ms(change.predicted_step_s)}" if change.predicted_step_s else ""
        said = "kept" if outcome == "kept" else "put back"
        self._say(f"{change.parameter} {change.from_value} -> {change.to_value} {said}: {why}{predicted}")
        handle = handle_of(self._loader)
        if handle is not None:
            autopilot_record.save(handle.session)

    def _use(self, settings: Changes) -> None:
        """Makes the loader of these settings, unless it is the current one."""
        if settings == self._settings:
            return
        earlier, self._loader = handle_of(self._loader), self._recorded(settings)
        self._settings = settings
        if earlier is not None:
            earlier.note("superseded", "yes")  # a run's report is of the last one

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


def _report_of(measured: Measured) -> Report:
    assert measured.report is not None
    return measured.report


def _loop_start(report: Report) -> tuple[float, int]:
    """Seconds until a loop has its first batch, and the steps of a loop."""
    profile = report.profile
    loops = max(1, profile.epochs)
    start_s = (profile.startup.first_batch_s + profile.startup.later_epochs_s) / loops
    return start_s, max(1, profile.sink.steps // loops)


def _whole_step(report: Report) -> float:
    """Seconds a step, with its part of what the beginning of a loop costs."""
    start_s, steps = _loop_start(report)
    return report.profile.sink.step_s + start_s / steps


def _ms(time_s: float) -> str:
    return f"{time_s * 1e3:.4g} ms"


def _cost(report: Report, changes: Changes) -> float:
    """Seconds a step that more worker processes take to start; infinite if memory or cores do not suffice."""
    profile = report.profile
    model = profile.model
    if model is None:
        return 0.0
    sets = {one.sets: one for one in model.parameters}
    now, then = _workers(sets, {}), _workers(sets, changes)
    workers, more = now[0], then[0] - now[0]
    if workers and all(stage.runs_in != "process" for stage in model.stages):
        return 0.0  # threads
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    if more > 0 and ranks > 1 and then[0] > max(1, len(os.sched_getaffinity(0)) // ranks):
        return math.inf
    batches, size = then[0] * then[1] - now[0] * now[1], profile.sink.batch_bytes
    free = _free_shared_memory()
    if batches > 0 and (batches * size > _OF_MEMORY * free if size else free < _UNKNOWN_BATCHES):
        return math.inf
    host = profile.host
    memory = math.inf if host.available_memory is None else host.available_memory
    if more > 0 and more * (host.memory or 0) / (workers + 1) > _OF_MEMORY * memory:
        return math.inf
    keeps = sets.get("keeps_workers")
    if more <= 0 or (keeps is not None and keeps.value):
        return 0.0
    start_s, steps = _loop_start(report)
    return float(more * (start_s / workers if workers else _WORKER_STARTS_S) / steps)


def _free_shared_memory() -> float:
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return math.inf
    return float(found.f_bavail * found.f_frsize)


def _workers(sets: dict[str, LoaderParameter], changes: Changes) -> tuple[int, int]:
    """Workers, and the window of each, once ``changes`` are made."""
    found = [sets.get("workers"), sets.get("window")]
    values = [0 if one is None else int(changes.get(one.name, one.value) or 0) for one in found]
    return values[0], values[1] or 2


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
