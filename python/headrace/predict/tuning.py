"""`tune`: tries parameters of a loader on the loop that uses it, guided by predictions."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterator
from typing import Any

from headrace import _core
from headrace.common.owned_folder import OwnedFolder
from headrace.common.page import HasPage
from headrace.errors import Error, UsageError
from headrace.loaders.wrap import wrap
from headrace.pipeline._stages import whole
from headrace.predict.replay import close
from headrace.predict.search import (
    BudgetError,
    Changes,
    Measured,
    Outcome,
    Search,
    Trial,
    mean_step,
    value_of,
)
from headrace.record.session import enabled, session
from headrace.results.report import Report
from headrace.results.tuning_record import NO_CURVE, TuningRecord, assignments
from headrace.traces.table import Table
from headrace.traces.table_text import seconds


class Tuned(HasPage):
    """The result of `tune`. ``print(result)`` is the text. Immutable."""

    def __init__(self, outcome: Outcome, took_s: float) -> None:
        self._outcome = outcome
        self._took_s = took_s

    @property
    def best(self) -> dict[str, Any]:
        """Every parameter that was changed in a trial, with the value to use: ``make_loader(**result.best)``.

        Empty if no change was worth a trial.
        """
        report = self._outcome.start.measured.report
        names = dict.fromkeys(name for trial in self._outcome.trials for name in trial.settings)
        found = {name: self._outcome.best.settings.get(name, value_of(report, name)) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters of `best` that differ from the start."""
        return dict(self._outcome.best.settings)

    @property
    def report(self) -> Report:
        """The report of the best parameters' own trial. Raises Error if it could not be recorded."""
        report = self._outcome.best.measured.report
        if report is None:
            raise Error("the best trial left no report")
        return report

    @property
    def start_step_s(self) -> float:
        """Seconds a step with the parameters of the beginning, from the comparison at the end."""
        return self._outcome.start_s

    @property
    def best_step_s(self) -> float:
        """Seconds a step with the best ones, interleaved with the former."""
        return self._outcome.best_s

    @property
    def reason(self) -> str:
        """Why the search ended."""
        return self._outcome.reason

    @property
    def trials(self) -> Table:
        """A row for each measurement, in their order: what was changed, predicted and measured."""
        rows = self._rows()
        return Table.of_rows(list(rows[0]), rows, [*self._outcome.failures, f"ended: {self.reason}"])

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "trial": number,
                "parameter": _label(trial),
                "settings": assignments(trial.settings),
                "predicted_step_s": trial.expected.predicted_s,
                "low_s": trial.expected.low_s,
                "high_s": trial.expected.high_s,
                "measured_step_s": trial.step_s,
                "error_s": trial.measured.error_s,
            }
            for number, trial in enumerate(self._outcome.trials)
        ]

    def to_text(self, width: int = 100) -> str:
        """For people, no line wider than ``width`` columns."""
        record = self._record()
        names = ("parameter", "predicted_step_s", "low_s", "high_s", "measured_step_s")
        shown = Table.of_rows(names, self._rows(), self.trials.notes)
        return f"{record.headline}\n{record.about}\n\n{shown.to_text(width)}\n"

    def _page(self) -> str:
        """A chart of predicted against measured steps."""
        return self._record().html(True)

    def save(self, path: str | os.PathLike[str], of: str = "") -> None:
        """Write a JSON document, which ``headrace view`` shows. of: what was tuned, in a few words."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 5 ms to import
            file.write(self._record(of).to_json() + "\n")

    def _record(self, of: str = "") -> TuningRecord:
        return TuningRecord(
            {
                "of": of,
                "changed": self.changed,
                "start_step_s": self.start_step_s,
                "best_step_s": self.best_step_s,
                "took_s": self._took_s,
                "trials": self._rows(),
                "notes": list(self.trials.notes),
                **self._curve(),
            }
        )

    def _curve(self) -> dict[str, Any]:
        """The predictions from the start for values of one parameter, and their measured trials."""
        report = self._outcome.start.measured.report
        parameter, now, points = NO_CURVE if report is None else report._parsed.curve()
        measured = [
            (trial.settings.get(parameter, now), trial.step_s)
            for trial in self._outcome.trials
            if trial.settings.keys() <= {parameter}
        ]
        return {"curve": (parameter, now, points), "measured": measured if points else []}

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        said = assignments(self.changed) or "nothing to change"
        return f"<headrace.Tuned {said}: {seconds(self.start_step_s)} -> {seconds(self.best_step_s)} a step>"


def _label(trial: Trial) -> str:
    if not trial.repeats:
        return trial.in_words or "start"
    return f"{'winner' if trial.settings else 'start'}, again"


def tune(
    make_loader: Callable[..., Any], step: Callable[[Any], Any], *, budget_s: float = 120.0, steps: int = 100
) -> Tuned:
    """The parameters with which the loop ``for batch in make_loader(...): step(batch)`` is fastest.

    make_loader: called without arguments for the start, then with other parameters in the framework's own
    names: ``make_loader(num_workers=4, prefetch_factor=4)``. Parameters that it does not take are not tried.
    If it returns a `Pipeline`, workers and capacities are set on that, and it needs no parameters. step: one
    step of your loop; it trains on what it gets. steps: of each trial (8 or more). budget_s: no new trial
    begins that would end later.

    The beginning is measured, then the change with the best prediction (`Report.what_if`), and so on from the
    best parameters; predictions of a parameter are corrected by what was measured. It ends when no change is
    predicted to gain more than the noise. In the end start and winner are measured again in turn; if the
    winner is not faster again, the start is the result.

    Raises UsageError for wrong arguments, Error if nothing can be recorded or there is no time for a second
    trial, and what make_loader, the loader and step raise at the start. Later, an exception or an ``exit()``
    is that trial's failure.
    """
    functions: tuple[Any, ...] = (make_loader, step)
    if not all(map(callable, functions)):
        raise UsageError("tune takes two functions: make_loader(**parameters) and step(batch)")
    whole(steps, "steps", 8)
    if not budget_s > 0:
        raise UsageError(f"budget_s is a number above 0, not {budget_s!r}")
    if not enabled():
        raise Error("nothing can be tuned while HEADRACE=0 switches recording off")
    with OwnedFolder("headrace-tuning-") as folder:
        trials = _Trials(make_loader, step, steps, folder.path)
        return tuned(Search(trials, budget_s, trials.tunable), budget_s, steps, "budget_s={}", "steps={}")


def tuned(search: Search, budget_s: float, steps: int, budget: str, fewer: str) -> Tuned:
    """The result of a search whose trials have so many steps.

    budget, fewer: how its user sets a larger budget in seconds, and fewer steps. Raises Error with these if
    there is no time for a second trial, and what `Search.run` raises.
    """
    began = _core.now_s()
    try:
        outcome = search.run()
    except BudgetError as error:
        fit = error.steps_within(budget_s, steps)
        enough = [budget.format(math.ceil(error.needs_s)), *([] if fit is None else [fewer.format(fit)])]
        raise Error(f"{error}: {', or '.join(enough)}") from None
    return Tuned(outcome, _core.now_s() - began)


class _Trials:
    """Runs the loop in this process."""

    def __init__(
        self, make_loader: Callable[..., Any], step: Callable[[Any], Any], steps: int, folder: str
    ) -> None:
        self._make = make_loader
        self._step = step
        self._steps = steps
        self._folder = folder
        self._runs = 0
        self._makes_pipelines = False

    def tunable(self, parameter: str) -> bool:
        if self._makes_pipelines and parameter.endswith((".workers", ".capacity")):
            return True
        return _takes(self._make, parameter)

    def __call__(self, settings: Changes, limit_s: float) -> Measured:
        self._runs += 1
        with session(run=f"{self._folder}/{self._runs}"):
            loader = self._loader(settings)
            times = list(self._times(loader, limit_s))
            report: Report = loader.report()
        measured = mean_step(times)
        measured.report = report
        return measured

    def _loader(self, settings: Changes) -> Any:
        from headrace.pipeline import Pipeline

        taken = {name: value for name, value in settings.items() if _takes(self._make, name)}
        loader = self._make(**taken)
        self._makes_pipelines = isinstance(loader, Pipeline)
        loader = wrap(loader, name="tuned")
        for name, value in settings.items():
            if name not in taken:  # `decode.workers` or `decode.capacity` of a Pipeline
                operator, _, what = name.rpartition(".")
                getattr(loader, f"set_{what}")(operator, value)
        return loader

    def _times(self, loader: Any, limit_s: float) -> Iterator[float]:
        """Seconds of each step but the first of an epoch."""
        end = _core.now_s() + limit_s
        given = 0
        while given < self._steps:
            iterator = iter(loader)
            last = None
            try:
                for batch in iterator:
                    now = _core.now_s()
                    if last is not None:
                        yield now - last
                        given += 1
                    last = now
                    if given >= self._steps or (now > end and given >= 8):
                        return
                    self._step(batch)
            finally:
                close(iterator)
            if last is None:
                raise Error(f"{type(loader).__name__} yields no batch, so there is nothing to tune")
            given += 1  # an epoch of one batch ends, too


def _takes(function: Callable[..., Any], parameter: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return True
    known = parameters.get(parameter)
    return known is not None and known.kind in (known.KEYWORD_ONLY, known.POSITIONAL_OR_KEYWORD)
