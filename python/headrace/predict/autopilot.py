"""`autopilot`: parameters are set while the program trains, and stay where its steps became shorter.

What a loader needs is predicted from the recording of its loop so far, as `tune` does it. The next loop runs
with the best prediction; if its steps are shorter beyond chance, that stays, else it is put back.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import TypeVar

from headrace import _core
from headrace.common.launcher import speaks_for_job
from headrace.common.loader_names import unnumbered
from headrace.common.messages import say
from headrace.common.plain import typed_error_line
from headrace.common.sampling_thread import run_steps
from headrace.errors import Error, UsageError
from headrace.loaders.wrap import handle_of, wrap
from headrace.predict.comparison import Comparison
from headrace.predict.search import Candidate, Changes, Measured, Proposals, Trial, value_of
from headrace.record import live_parameters
from headrace.record.live_parameters import Pilot, Settable
from headrace.record.session import enabled, phased_loops
from headrace.results import autopilot_record
from headrace.results.figures import ParameterChange
from headrace.results.report import Report
from headrace.watch.random_state import global_states

T = TypeVar("T")

#: What `autopilot` may do beside, if its user says so.
ALLOWED = ("random", "sampler")
#: Steps with the same parameters, until it is predicted or judged; for a judgement that is not clear, so many
#: times as many.
_STEPS = 48
_UNCLEAR = 4
#: What is predicted to gain less is not tried: a trial costs an epoch.
_MIN_GAIN = 0.05
#: Changes of one loader that are tried; those in a row that are put back.
_MOST_TRIALS = 8
_MOST_IN_VAIN = 2
_PERIOD_S = 0.25
#: Of what is free, a change may take.
_OF_MEMORY = 0.25
#: To start one worker process, if none was seen to start.
_WORKER_STARTS_S = 0.03
#: Shared memory that batches of unknown size may need.
_UNKNOWN_BATCHES = 1 << 30
#: Looks into GetNext whether threads of the loader draw random numbers: at once, at most, at least.
_LOOKS = 12
_MOST_LOOKS = 48
_FEWEST_LOOKS = 4
_LOOK_S = 0.003


class Autopilot(Pilot):
    """That of a process. Loops begin on the program's threads; all else is on one of its own."""

    def __init__(self) -> None:
        #: What it may do beside, with loaders that `add` does not name; None: it sets nothing of them.
        self.elsewhere: frozenset[str] | None = None
        self._added: weakref.WeakKeyDictionary[_core.LoaderHandle, frozenset[str]]
        self._added = weakref.WeakKeyDictionary()
        self._flights: dict[object, _Flight] = {}

    def add(self, handle: _core.LoaderHandle, allowed: Iterable[str]) -> None:
        """This loader. allowed: what it may do beside with it."""
        self._added[handle] = frozenset(allowed)

    def wants(self, handle: _core.LoaderHandle) -> bool:
        return handle.id >= 0 and (self.elsewhere is not None or handle in self._added)

    def begins(self, loader: Settable) -> None:
        allowed = self._added.get(loader.handle, self.elsewhere or frozenset())
        key = loader.key or unnumbered(loader.handle.name)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(allowed)
        flight.begins(loader)
        self._added[loader.handle] = allowed  # it may have another record now

    def failed(self, handle: _core.LoaderHandle, why: str) -> None:
        for flight in self._flights.values():
            if flight.is_of(handle):
                flight.failed(why)

    def look_on(self) -> Iterator[float]:
        while live_parameters.pilot_of_process() is self:
            yield _PERIOD_S
            for flight in list(self._flights.values()):
                yield from flight.look()


class _Flight:
    """One loader, which may be made anew for each epoch."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        #: Held for a moment, by the program's thread when a loop begins.
        self._lock = threading.Lock()
        self._loader: Settable | None = None
        #: What differs from the start: now, and from the next loop on (None: the same).
        self._settings: Changes = {}
        self._next: Changes | None = None
        #: Where the steps with these settings begin.
        self._since: _core.SegmentImage | None = None
        self._steps_at = 0
        self._needs = _STEPS
        self._proposals = Proposals(self._may_set, self._cost, _MIN_GAIN)
        self._best: Trial | None = None
        self._tries: Candidate | None = None
        #: Of what is tried, or was last.
        self._change = ParameterChange()
        self._trials = self._in_vain = 0
        self._done = False
        self._refused: dict[str, str] = {}
        self._looks = self._draws = 0
        self._length = 0
        #: Of all recordings so far.
        self._facts: dict[str, str] = {}

    # --- on the program's thread ---

    def begins(self, loader: Settable) -> None:
        with self._lock:
            earlier, self._loader = self._loader, loader
            self._try_only_what_is_allowed(loader)
            if self._next is not None:
                self._settings, self._next = self._next, None
                if loader.renew is not None:
                    loader.handle = loader.renew()
                    self._change.own_record = True
                self._segment_begins(loader)
            elif earlier is None or earlier.handle is not loader.handle:
                self._segment_begins(loader)
            self._set(loader)

    def _try_only_what_is_allowed(self, loader: Settable) -> None:
        """What it depends on may have changed since it was chosen."""
        if self._next is None or self._tries is None:
            return
        why = next((one for name in self._tries.changes if (one := self._why_not(loader, name))), "")
        if why:
            self._tell(loader, "put_back", why)
            self._done, self._next, self._tries = True, None, None

    def is_of(self, handle: _core.LoaderHandle) -> bool:
        return self._loader is not None and self._loader.handle is handle

    def failed(self, why: str) -> None:
        with self._lock:
            self._done, self._next = True, None
            self._settings = {} if self._best is None else self._best.settings
            if self._tries is not None and self._loader is not None:
                self._tell(self._loader, "put_back", f"its workers failed, the loop went on without ({why})")
            elif self._loader is not None:
                self._settings = {}
                self._say(f"its workers failed, it goes on without ({why})")
            self._tries = None

    def _set(self, loader: Settable) -> None:
        for name, value in self._settings.items():
            if name in loader.setters:
                loader.setters[name](value)

    def _segment_begins(self, loader: Settable) -> None:
        self._steps_at = loader.handle.steps
        self._needs = _STEPS
        path = loader.handle.session.live_path
        self._since = _core.SegmentImage(path) if self._steps_at and path else None

    # --- on the pilot's ---

    def look(self) -> Iterator[float]:
        """Yields seconds to sleep. Never raises."""
        try:
            yield from self._look()
        except Exception as error:  # the loop goes on as it is
            self._done = True
            self._say(f"nothing more is set ({typed_error_line(error)})")

    def _look(self) -> Iterator[float]:
        loader = self._loader
        if loader is None or not self._waits_for_steps(loader):
            return
        if loader.draws_here:
            yield from self._look_for_draws(loader)
        if loader.handle.steps - self._steps_at < self._needs:
            return
        report = self._report(loader)
        self._facts |= report.profile.settings
        yield 0.0
        with self._lock:
            if self._waits_for_steps(loader):
                self._decide(loader, report)
        if not loader.live or not self._sets_now(loader):
            return
        yield _PERIOD_S  # what was under way comes with the old ones
        with self._lock:
            self._segment_begins(loader)

    def _waits_for_steps(self, loader: Settable) -> bool:
        return self._loader is loader and self._next is None and not self._done

    def _sets_now(self, loader: Settable) -> bool:
        with self._lock:
            if self._next is None:
                return False
            self._settings, self._next = self._next, None
            self._set(loader)
        return True

    def _look_for_draws(self, loader: Settable) -> Iterator[float]:
        """The loop waits, so what draws meanwhile are the loader's threads."""
        handle = loader.handle
        for _ in range(_LOOKS if self._looks < _MOST_LOOKS else 0):
            steps, before = handle.steps, global_states()
            if not handle.in_next[0]:
                yield _LOOK_S
                continue
            yield _LOOK_S
            moved = global_states() != before
            if handle.in_next[0] and handle.steps == steps:
                self._looks += 1
                self._draws += moved

    def _report(self, loader: Settable) -> Report:
        handle = loader.handle
        path = handle.session.live_path
        if not path:
            raise Error("the recording has no file")
        image = _core.SegmentImage(path)
        index = next(each["index"] for each in image.loaders() if each["name"] == handle.name)
        return Report(image.profile_json(index, self._since))

    def _decide(self, loader: Settable, report: Report) -> None:
        self._length = loader.length or 0
        measured = Measured(_whole_step(report, self._length), 0.0, report)
        if self._best is None:
            self._best = Trial({}, {}, {}, Candidate({}), measured)
        elif self._tries is not None and not self._judge(loader, self._best, self._tries, measured):
            return
        exposed = _exposed(_report_of(self._best.measured), self._length)
        if exposed > _MIN_GAIN and self._trials < _MOST_TRIALS and self._in_vain < _MOST_IN_VAIN:
            self._try_next(loader, self._best)
        if self._tries is None:
            self._done = True
            if self._settings != self._best.settings:
                self._next = self._best.settings

    def _judge(self, loader: Settable, best: Trial, tried: Candidate, measured: Measured) -> bool:
        """Whether the trial is over. Sets what is best."""
        step = Comparison([_report_of(best.measured)], [_report_of(measured)]).step
        change = self._change
        change.before_step_s, change.after_step_s = best.step_s, measured.step_s
        change.low, change.high = step.low, step.high
        seen = [why for name in self._settings if (why := self._why_not(loader, name))]
        seems_faster = step.ratio < 1 and measured.step_s < best.step_s
        if seems_faster and not seen and not step.changed and self._needs < _UNCLEAR * _STEPS:
            self._needs = _UNCLEAR * _STEPS
            return False
        self._proposals.learn(tried, measured)
        self._in_vain += 1
        took = f"{_ms(best.step_s)} -> {_ms(measured.step_s)} a step"
        if seen:
            self._tell(loader, "put_back", seen[0])
        elif seems_faster and step.changed:
            self._best = Trial(self._settings, tried.changes, {}, tried, measured)
            self._in_vain = 0
            self._tell(loader, "kept", took)
        else:
            self._tell(loader, "put_back", f"{took}, which may be chance" if seems_faster else took)
        self._tries = None
        return True

    def _try_next(self, loader: Settable, best: Trial) -> None:
        told, self._refused = self._refused, {}
        self._tries = self._proposals.next(best)
        for parameter, why in self._refused.items():
            if parameter not in told:
                self._say(f"{parameter} stays as it is: {why}")
        if self._tries is None:
            return
        self._trials += 1
        report, changes = _report_of(best.measured), self._tries.changes
        self._next = {**best.settings, **changes}
        self._proposals.tried.append(self._next)
        self._change = ParameterChange(
            loader=loader.handle.name,
            step=loader.handle.steps,
            parameter=", ".join(changes),
            from_value=", ".join(str(value_of(report, name)) for name in changes),
            to_value=", ".join(map(str, changes.values())),
            predicted_step_s=self._tries.predicted_s,
            outcome="tried",
        )
        autopilot_record.add(loader.handle.session, self._change)

    def _tell(self, loader: Settable, outcome: str, why: str) -> None:
        change = self._change
        change.outcome, change.says = outcome, why
        predicted = f", predicted {_ms(change.predicted_step_s)}" if change.predicted_step_s else ""
        kept = "kept" if outcome == "kept" else "put back"
        self._say(f"{change.parameter} {change.from_value} -> {change.to_value} {kept}: {why}{predicted}")
        autopilot_record.save(loader.handle.session)

    def _say(self, what: str) -> None:
        loader = self._loader
        if loader is not None and speaks_for_job():
            say(f"autopilot: {unnumbered(loader.handle.name)}: {what}")

    # --- what may be tried ---

    def _may_set(self, parameter: str) -> bool:
        loader = self._loader
        if loader is None or self._best is None or parameter not in loader.setters:
            return False
        why = self._why_not(loader, parameter)
        if why:
            self._refused.setdefault(parameter, why)
        return not why

    def _why_not(self, loader: Settable, parameter: str) -> str:
        refused = loader.refused(parameter, self._facts, self._allowed)
        if refused or not loader.draws_here or "random" in self._allowed or parameter.endswith("capacity"):
            return refused
        if self._draws:
            return "its threads draw random numbers, whose order depends on their number"
        return "" if self._looks >= _FEWEST_LOOKS else "whether its threads draw random numbers is not known"

    def _cost(self, report: Report, changes: Changes) -> float:
        """Seconds a step for workers that start; infinite where memory or cores do not suffice."""
        profile = report.profile
        model = profile.model
        if model is None:
            return 0.0
        now = {one.sets: int(one.value or 0) for one in model.parameters if one.sets in ("workers", "window")}
        sets = {one.name: one.sets for one in model.parameters}
        then = {**now, **{sets[name]: value for name, value in changes.items() if name in sets}}
        workers, more = now.get("workers", 0), then.get("workers", 0) - now.get("workers", 0)
        if more > 0 and then["workers"] > _cores_of_rank():
            return math.inf
        if workers and all(stage.runs_in != "process" for stage in model.stages):
            return 0.0
        batches = then.get("workers", 0) * (then.get("window") or 2) - workers * now.get("window", 0)
        room, size = _free_shared_memory(), profile.sink.batch_bytes
        if batches > 0 and (batches * size > _OF_MEMORY * room if size else room < _UNKNOWN_BATCHES):
            return math.inf
        if more <= 0:
            return 0.0
        host = profile.host
        free = math.inf if host.available_memory is None else host.available_memory
        if more * (host.memory or 0) / (workers + 1) > _OF_MEMORY * free:
            return math.inf
        if any(one.sets == "keeps_workers" and one.value for one in model.parameters):
            return 0.0
        start_s, steps = _loop_start(report, self._length)
        return float(more * (start_s / workers if workers else _WORKER_STARTS_S) / steps)


def _report_of(measured: Measured) -> Report:
    if measured.report is None:
        raise Error("nothing was recorded")
    return measured.report


def _cores_of_rank() -> int:
    """No limit in a job of one rank: workers may wait more than they compute."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    return 1_000_000 if ranks < 2 else max(1, len(os.sched_getaffinity(0)) // ranks)


def _free_shared_memory() -> float:
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return math.inf
    return float(found.f_bavail * found.f_frsize)


def _loop_start(report: Report, length: int) -> tuple[float, int]:
    """Seconds until a loop has its first batch, and the steps of a loop. length: 0: unknown."""
    profile = report.profile
    loops = max(1, profile.epochs)
    start_s = (profile.startup.first_batch_s + profile.startup.later_epochs_s) / loops
    return start_s, max(1, length, profile.sink.steps // loops)


def _whole_step(report: Report, length: int) -> float:
    """Seconds a step, with its part of what the beginning of a loop costs."""
    start_s, steps = _loop_start(report, length)
    return report.profile.sink.step_s + start_s / steps


def _exposed(report: Report, length: int) -> float:
    """Share of a step that it waits for the input: more cannot be gained."""
    sink = report.profile.sink
    whole_s = _whole_step(report, length)
    return 1 - sink.compute_s / whole_s if whole_s > 0 else 0.0


def _ms(time_s: float | None) -> str:
    return "?" if time_s is None else f"{time_s * 1e3:.4g} ms"


def autopilot(
    loader: T,
    *,
    allow: Iterable[str] = (),
    name: str | None = None,
    run: str | os.PathLike[str] | None = None,
    rank: int | None = None,
) -> T:
    """Record the loop over ``loader``, as `wrap` does, and set its parameters while it trains.

    ``loader = hr.autopilot(DataLoader(...))``: after the first epoch (48 steps or more), what is predicted to
    be fastest (`Report.what_if`) is set for the next one, measured, and kept or put back. Set are the number
    of workers and their window (``num_workers``, ``prefetch_factor``); of a `Pipeline` the workers and
    capacities of its operators, at once. A line on stderr says what was done, and so does the report.

    No batch changes: what depends on the number of workers keeps it (streams, random numbers in workers, a
    dataset that asks for its worker). allow: "random": random numbers may be others, as with another seed;
    "sampler": samplers of your own may be asked further ahead.

    loader: wrapped or not. name, run, rank: as for `wrap`. Raises UsageError for another ``allow`` and what
    `wrap` raises. With HEADRACE=0 it returns ``loader``.
    """
    allowed = [allow] if isinstance(allow, str) else list(allow)
    check_allowed(allowed)
    if not enabled():
        return loader
    pilot = _start()
    is_named = name is not None or run is not None or rank is not None
    wrapped = wrap(loader, name=name, run=run, rank=rank) if is_named or handle_of(loader) is None else loader
    handle = handle_of(wrapped)
    if pilot is not None and handle is not None:
        pilot.add(handle, allowed)
    return wrapped


def check_allowed(allowed: Iterable[str]) -> None:
    """Raises UsageError for what cannot be allowed."""
    for each in allowed:
        if each not in ALLOWED:
            raise UsageError(f"autopilot may be allowed {' and '.join(ALLOWED)}, not {each!r}")


def start_below_run() -> None:
    """In a program below ``headrace run --autopilot``: all of its loaders."""
    allowed = live_parameters.allowed_in_environment()
    pilot = _start() if allowed is not None else None
    if pilot is not None:
        pilot.elsewhere = allowed


def _start() -> Autopilot | None:
    """The pilot of this process. None: its loops belong to a trial."""
    if phased_loops():
        return None
    pilot = live_parameters.pilot_of_process()
    if not isinstance(pilot, Autopilot):
        pilot = Autopilot()
        live_parameters.fly(pilot)
        run_steps(pilot.look_on())
    return pilot
