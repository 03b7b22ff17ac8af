"""The search for faster parameters of a loader: predict, measure, learn from the difference."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace import _core
from headrace.common.plain import error_line
from headrace.errors import Error
from headrace.results.report import Report

#: Parameters with their values, in the framework's names.
Changes = dict[str, Any]

#: A gain below this is noise, however quiet the machine is.
MIN_GAIN = 0.02
#: More workers than this, for each core, are not tried.
_WORKERS_PER_CORE = 4
#: A trial that takes this many times as long as the slowest one before it is ended early, but not before it
#: had the time in which the budget has room for a search: more workers take longer to start.
_HOPELESS = 1.5
#: Time that must be left for another one, in trials: its own, and the comparison at the end.
_WITH_COMPARISON = _HOPELESS + 2
#: Start, two changes and a part of the comparison: with less, a search finds little.
_TRIALS_OF_A_SEARCH = 6
#: Real steps of a run that are not measured: this share of them, and at least three.
_WARM_UP = 0.1
_BLOCKS = 8


@dataclass
class Measured:
    """Seconds a step, its standard error, and the report of those steps (None: nothing was recorded)."""

    step_s: float
    error_s: float
    report: Report | None = None


def mean_step(times: Sequence[float]) -> Measured:
    """The mean of step times in their order, without the beginning; its error from blocks of them.

    The error is that of the usual block, so one step that another program made slow does not change it.
    Raises Error for fewer than eight steps.
    """
    if len(times) < 8:
        raise Error(f"{len(times)} steps are too few to measure: at least 8 are needed")
    steady = times[min(max(3, int(_WARM_UP * len(times))), len(times) - 5) :]
    blocks = min(_BLOCKS, len(steady) // 2)
    size = len(steady) // blocks
    means = [statistics.fmean(steady[i * size : (i + 1) * size]) for i in range(blocks)]
    middle = statistics.median(means)
    deviation = 1.4826 * statistics.median(abs(each - middle) for each in means)
    return Measured(statistics.fmean(steady), deviation / math.sqrt(blocks))


@dataclass
class Candidate:
    """Changes to try, and the step that is expected; None: it cannot be predicted."""

    changes: Changes
    predicted_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None

    @property
    def key(self) -> str:
        """Parameters whose predictions are wrong in the same way."""
        return ", ".join(sorted(self.changes))


@dataclass
class Trial:
    """One measurement. settings: all parameters that differ from the start. changes: those that are new."""

    settings: Changes
    changes: Changes
    before: Changes
    expected: Candidate
    measured: Measured
    repeats: bool = False  #: of the start, or of the winner

    @property
    def step_s(self) -> float:
        return self.measured.step_s

    @property
    def in_words(self) -> str:
        """``num_workers 0 -> 2``; empty for the start."""
        return ", ".join(f"{name} {self.before.get(name)} -> {value}" for name, value in self.changes.items())


#: Runs the loop with these parameters in place of the start's, for so many seconds at most.
Measure = Callable[[Changes, float], Measured]


@dataclass
class Outcome:
    trials: list[Trial]
    best: Trial
    #: Why the search ended.
    reason: str = ""
    #: Trials that raised, a sentence each.
    failures: list[str] = field(default_factory=list)
    #: Steps of the last comparison, interleaved: of the start and of the best.
    start_s: float = math.nan
    best_s: float = math.nan

    @property
    def start(self) -> Trial:
        return self.trials[0]


class BudgetError(Error):
    """Only the start could be measured."""

    def __init__(self, trial_s: float, step_s: float) -> None:
        super().__init__(
            f"a trial takes {trial_s:.3g} s and a search needs about {_TRIALS_OF_A_SEARCH} of them"
        )
        #: Seconds that a search needs.
        self.needs_s = _TRIALS_OF_A_SEARCH * trial_s
        self._trial_s = trial_s
        self._step_s = step_s

    def steps_within(self, budget_s: float, steps: int) -> int | None:
        """Steps of trials that fit into ``budget_s``, if trials of ``steps`` do not; None: too few."""
        start_up_s = max(self._trial_s - steps * self._step_s, 0.0)
        fit = int((budget_s / _TRIALS_OF_A_SEARCH - start_up_s) / self._step_s)
        return min(fit, steps - 1) if fit >= 8 and steps > 8 else None


class Proposals:
    """The trial to make next, by predictions that are corrected by what was measured."""

    def __init__(
        self,
        tunable: Callable[[str], bool],
        cost: Callable[[Report, Changes], float] = lambda *_: 0.0,
        min_gain: float = 0.0,
    ) -> None:
        """cost: seconds that changes of what a report has add to a step, beside what is predicted; infinite:
        they must not be tried. min_gain: less is not worth a trial."""
        self._tunable = tunable
        self._cost = cost
        self._min_gain = min_gain
        self._ratios: dict[str, list[float]] = {}
        #: Settings that need no other trial.
        self.tried: list[Changes] = [{}]

    def next(self, best: Trial) -> Candidate | None:
        """From the best parameters so far; None: nothing is predicted to gain enough."""
        report = best.measured.report
        if report is None:
            return None
        noise = max(self._min_gain, noise_of(best.measured))
        found = [each for each in candidates(report, self._tunable) if self._is_new(best, each)]
        fresh = [(each, cost) for each in found if (cost := self._cost(report, each.changes)) < math.inf]
        predicted = [(self._corrected(one) + cost, one) for one, cost in fresh if one.predicted_s is not None]
        if predicted:
            changed_s, first = min(predicted, key=lambda one: one[0])
            # One simulation for both: what it misses of the recorded run, it misses of the changed run, too.
            unchanged_s = unchanged_step(report, first) or best.step_s
            return first if changed_s < unchanged_s * (1 - noise) else None
        waits = report.profile.sink.wait_share > 0.05 + 4 * self._min_gain
        return fresh[0][0] if fresh and waits else None

    def learn(self, candidate: Candidate, measured: Measured) -> None:
        if candidate.predicted_s:
            self._ratios.setdefault(candidate.key, []).append(measured.step_s / candidate.predicted_s)

    def _is_new(self, best: Trial, candidate: Candidate) -> bool:
        return {**best.settings, **candidate.changes} not in self.tried

    def _corrected(self, candidate: Candidate) -> float:
        assert candidate.predicted_s is not None
        return candidate.predicted_s * statistics.median(self._ratios.get(candidate.key, [1.0]))


class Search:
    """Greedy: the change with the best prediction is measured next, from the best parameters so far.

    Predictions come from the recording of these best parameters; where a parameter's predictions were wrong
    before, they are corrected by as much. What cannot be predicted is tried where it may help.
    """

    def __init__(
        self,
        measure: Measure,
        budget_s: float,
        tunable: Callable[[str], bool] = lambda _: True,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._measure = measure
        self._budget_s = budget_s
        self._progress = progress
        self._began = _core.now_s()
        self._proposals = Proposals(tunable)
        self._longest_s = 0.0

    def run(self) -> Outcome:
        """Raises what the measurement of the start raises; a trial that fails later is left out. Raises
        BudgetError if there is no time to try anything."""
        self._progress("start")
        start = Trial({}, {}, {}, Candidate({}), self._timed({}, max(self._budget_s / 3, 1)))
        outcome = Outcome([start], start, start_s=start.step_s, best_s=start.step_s)
        outcome.reason = self._try_candidates(outcome)
        if outcome.best is not start:
            self._compare_again(outcome)
        return outcome

    def _try_candidates(self, outcome: Outcome) -> str:
        while True:
            best = outcome.best
            found = self._proposals.next(best)
            if found is None:
                return _no_further(outcome)
            if self._left_s() < _WITH_COMPARISON * self._longest_s:
                if len(self._proposals.tried) == 1:
                    raise BudgetError(self._longest_s, best.step_s)
                return "the time is over"
            settings = {**best.settings, **found.changes}
            before = {name: value_of(best.measured.report, name) for name in found.changes}
            self._proposals.tried.append(settings)
            expected = f", predicted {found.predicted_s * 1e3:.3g} ms" if found.predicted_s else ""
            self._progress(f"{_in_words(found.changes)}{expected}")
            try:
                measured = self._quieter(best, settings)
            except (Exception, SystemExit) as error:
                self._failed(outcome, _in_words(found.changes), error)
                continue
            trial = Trial(settings, found.changes, before, found, measured)
            outcome.trials.append(trial)
            self._proposals.learn(found, measured)
            if measured.step_s < best.step_s * (1 - noise_of(best.measured, measured)):
                outcome.best = trial

    def _failed(self, outcome: Outcome, what: str, error: BaseException) -> None:
        """An `exit()` of a trial is its failure, too."""
        said = str(error).strip().splitlines() if isinstance(error, Exception) else []
        outcome.failures.append(f"{what} failed: {error_line(said[-1] if said else repr(error))}")
        self._progress(outcome.failures[-1])

    # --- the end ---

    def _compare_again(self, outcome: Outcome) -> None:
        """Start and winner in turn; the start stays where the winner is not faster again."""
        start, best = outcome.start, outcome.best
        steps: dict[str, list[Measured]] = {"start": [], "winner": []}
        for what, trial in (("start", start), ("winner", best)) * 2:
            if all(steps.values()) and self._left_s() < self._longest_s:
                break
            self._progress(f"{what} again")
            try:
                measured = self._timed(trial.settings, self._hopeless_s)
            except (Exception, SystemExit) as error:
                self._failed(outcome, f"{what} again", error)
                continue
            steps[what].append(measured)
            outcome.trials.append(Trial(trial.settings, {}, {}, Candidate({}), measured, repeats=True))
        outcome.best = start
        if not all(steps.values()):
            outcome.reason = "start and winner could not be measured again"
            return
        start_s, best_s = (statistics.fmean(each.step_s for each in side) for side in steps.values())
        noise = noise_of(*steps["start"], *steps["winner"])
        outcome.start_s = outcome.best_s = start_s
        if best_s < start_s * (1 - noise):
            outcome.best, outcome.best_s = best, best_s
            return
        outcome.reason = (
            "measured again, the winner was not faster than the start by more than the noise "
            f"({100 * noise:.0f} %)"
        )

    def _quieter(self, best: Trial, settings: Changes) -> Measured:
        """Measured a second time where noise hides a gain; of the two, the one with the smaller error."""
        first = self._timed(settings, self._hopeless_s)
        gain = 1 - first.step_s / best.step_s
        hidden = MIN_GAIN < gain <= noise_of(best.measured, first)
        if not hidden or self._left_s() < _WITH_COMPARISON * self._longest_s:
            return first
        second = self._timed(settings, self._hopeless_s)
        return min(first, second, key=lambda each: each.error_s)

    def _timed(self, settings: Changes, limit_s: float) -> Measured:
        began = _core.now_s()
        measured = self._measure(settings, min(limit_s, self._left_s()))
        self._longest_s = max(self._longest_s, _core.now_s() - began)
        return measured

    @property
    def _hopeless_s(self) -> float:
        return max(_HOPELESS * self._longest_s, self._budget_s / _TRIALS_OF_A_SEARCH)

    def _left_s(self) -> float:
        return self._budget_s - (_core.now_s() - self._began)


def _no_further(outcome: Outcome) -> str:
    best = outcome.best
    reason = (
        f"no further change is predicted to gain more than the noise ({100 * noise_of(best.measured):.0f} %)"
    )
    hidden = [each for each in outcome.trials if each.step_s < best.step_s * (1 - MIN_GAIN)]
    if hidden:
        fastest = min(hidden, key=lambda each: each.step_s)
        gain, noise = 1 - fastest.step_s / best.step_s, noise_of(best.measured, fastest.measured)
        reason += f"; {fastest.in_words} gained {100 * gain:.0f} %, its noise is {100 * noise:.0f} %"
    return reason


def noise_of(*measured: Measured) -> float:
    """Share of a step by which two equal measurements may differ."""
    errors = [each.error_s / each.step_s for each in measured if each.step_s > 0]
    return max(MIN_GAIN, 2 * math.sqrt(2) * statistics.fmean(errors or [0.0]))


def _in_words(changes: Changes) -> str:
    return ", ".join(f"{name} -> {value}" for name, value in changes.items())


# --- what a report offers ---


def candidates(report: Report, tunable: Callable[[str], bool]) -> list[Candidate]:
    """Changes worth a prediction: those that the report advises, then the neighbours of what is set."""
    found = _advised(report, tunable)
    for name, value in _neighbours(report):
        if tunable(name) and all(each.changes != {name: value} for each in found):
            try:
                said = report.what_if(**{name: value})
            except Error:
                continue
            found.append(Candidate({name: value}, said["step_s"], said["low"], said["high"]))
    return found


def _advised(report: Report, tunable: Callable[[str], bool]) -> list[Candidate]:
    """Rows about capacities share one prediction, so they are tried together."""
    found: list[Candidate] = []
    longer: Candidate | None = None
    for row in report.diagnosis.advice:
        if not row.parameter or row.to is None or not tunable(row.parameter):
            continue
        is_capacity = row.parameter.endswith(".capacity")
        if is_capacity and longer is not None:
            longer.changes[row.parameter] = row.to
            continue
        found.append(Candidate({row.parameter: row.to}, row.predicted_step_s, row.low, row.high))
        longer = found[-1] if is_capacity else longer
    return found


def _neighbours(report: Report) -> list[tuple[str, int]]:
    """More and fewer workers, a longer and a shorter window."""
    most = _WORKERS_PER_CORE * (os.cpu_count() or 1)
    found: list[tuple[str, int]] = []
    model = report.profile.model
    parameters: list[tuple[str, str, Any, float | None, float | None]] = []
    if model is not None:
        workers = max((stage.workers for stage in model.stages), default=0)
        parameters = [(one.name, one.sets, one.value, one.min, one.max) for one in model.parameters]
        parameters = [each for each in parameters if each[1] != "window" or workers > 0]
    else:
        for op in report.profile.operators:
            parameters += [(one.parameter, one.sets, one.value, one.min, one.max) for one in op.parameters]
    for name, sets, value, least, largest in parameters:
        if sets not in ("workers", "window"):
            continue
        now = int(value) if value is not None else 2
        near = [now * 2, now + 1, now - 1, now // 2] if sets == "workers" else [now * 2, now // 2]
        for each in dict.fromkeys(near):
            within = (least or 0) <= each <= (most if largest is None else min(most, largest))
            if each != now and within and not _loads_in_vain(report, name, each > now):
                found.append((name, each))
    return found


def _loads_in_vain(report: Report, parameter: str, more: bool) -> bool:
    """More requests for a remote service that serves no more: then its verdict advises no readers."""
    diagnosis = report.diagnosis
    return (
        more
        and diagnosis.cause == "remote_storage"
        and all(row.parameter != parameter for row in diagnosis.advice)
    )


def unchanged_step(report: Report, candidate: Candidate) -> float | None:
    """The prediction for the parameters of ``candidate`` as they are."""
    now = {name: value_of(report, name) for name in candidate.changes}
    if any(value is None for value in now.values()):
        return None
    try:
        step_s: float | None = report.what_if(**now)["step_s"]
    except Error:
        return None
    return step_s


def value_of(report: Report | None, parameter: str) -> Any:
    """The value of the parameter in the report's run; None if unknown."""
    if report is None:
        return None
    model = report.profile.model
    if model is not None:
        return next((one.value for one in model.parameters if one.name == parameter), None)
    for op in report.profile.operators:
        for one in op.parameters:
            if one.parameter == parameter:
                return int(one.value)
    for queue in report.profile.queues:
        if parameter == f"{queue.name}.capacity":
            return queue.capacity
    return None
