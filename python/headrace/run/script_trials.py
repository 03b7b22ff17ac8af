"""The trials of ``headrace tune``: the script in child processes, each with other parameters."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace import _core
from headrace.errors import Error
from headrace.predict.search import Changes, Measured, mean_step
from headrace.record.hooks import TRIAL
from headrace.record.trial import MIN_STEPS, same_name
from headrace.results.load import entries_in, in_order, report_on
from headrace.results.report import Report
from headrace.run.child import ending
from headrace.run.environment import python_command, recording_environment
from headrace.run.folder import choose_run_folder
from headrace.run.scratch import TrialPlace, WorkingFolder
from headrace.run.supervisor import Supervised

if TYPE_CHECKING:
    from headrace.results.loader_model import LoaderModel

#: Time of a script to end by itself after its last step, and then after SIGTERM.
_TO_END_S, _TO_STOP_S = 30.0, 5.0
#: Share of a trial's time after which its loop ends, so that the script has the rest to end by itself.
_OF_LIMIT = 0.9
#: Shown of a script that failed: lines, and characters of each.
_LAST_LINES, _LINE = 3, 200


class ScriptTrials:
    """Runs one script again and again; measured is the loop that does the steps of a trial first."""

    def __init__(
        self, program: Sequence[str], steps: int, budget_s: float, folder: WorkingFolder,
        show: Callable[[str], object] | None = None,
    ) -> None:  # fmt: skip
        """budget_s: no trial runs longer than this from now. show: called a few times a second while a trial
        runs, with a line about it.
        """
        self._command = python_command(program)
        self._steps = steps
        self._ends_at = time.monotonic() + budget_s
        self._to_stop_s = min(_TO_STOP_S, 0.1 * budget_s)
        self._folder = folder
        self._show = show or (lambda _: None)
        self._number = 0
        self._what = ""
        #: That of this process, so that it is the script's, too.
        self._rank = _core.default_rank()
        #: The loader that is tuned; empty before the first trial.
        self.loader = ""
        self._made_as = ""
        self._settable: list[str] = []
        self._model: LoaderModel | None = None

    @property
    def any_tunable(self) -> bool:
        """False, after the first trial, if no parameter of this loader can be injected."""
        return bool(self._settable)

    def tunable(self, parameter: str) -> bool:
        """True if the parameter can be injected."""
        return parameter in self._settable

    def begins(self, what: str) -> None:
        """The next trial is of this change."""
        self._number += 1
        self._what = what

    def __call__(self, settings: Changes, limit_s: float) -> Measured:
        with self._folder.entered() as place:
            began = time.monotonic()
            result = f"{place.scratch}/result.json"
            order = {
                "changes": settings, "loader": self.loader, "made_as": self._made_as, "steps": self._steps,
                "ends_at": began + _OF_LIMIT * limit_s, "result": result, "rank": self._rank,
            }  # fmt: skip
            run = choose_run_folder(f"{place.scratch}/run")
            environment = recording_environment(os.environ, run.path)
            environment |= {TRIAL: json.dumps(order), "PWD": place.folder, **place.environment}
            said = f"{place.scratch}/output"
            status, cut_off = self._run(environment, place, said, result, began + limit_s)
            try:
                measured = json.loads(Path(result).read_text())
            except (OSError, ValueError):
                seconds = time.monotonic() - began
                how = f"the script was stopped after {seconds:.0f} s" if cut_off else ending(status, seconds)
                raise Error(
                    f"{how or 'the script ended'} before a loop had {MIN_STEPS} steps{_last_lines(said)}"
                ) from None
            if not self.loader:
                self.loader, self._made_as = measured["loader"], measured["made_as"]
                self._settable = measured["settable"]
            found = mean_step(measured["times"])
            found.report = self._report([path for path, rank in run.new_segments() if rank == self._rank])
            if found.report is not None and not settings:
                self._model = found.report.profile.model
            return found

    def _run(
        self, environment: dict[str, str], place: TrialPlace, said: str, result: str, limit: float
    ) -> tuple[int, bool]:
        """The status at the end of the script, and whether it was stopped before it had measured."""
        began = time.monotonic()
        stop_at = min(limit, self._ends_at - self._to_stop_s)
        measured = stopped = False
        script = Supervised(self._command, environment, place.folder, said, place.prepare, place.owned)
        try:
            while script.poll() is None:
                now = time.monotonic()
                if not measured and Path(result).exists():
                    measured = True
                    stop_at = min(now + _TO_END_S, self._ends_at - self._to_stop_s)
                if now > stop_at and not stopped:
                    script.stop()
                    stopped = True
                if now > self._ends_at:
                    break
                self._show(f"trial {self._number}: {self._what} ({now - began:.0f} s)")
                time.sleep(0.1)
        finally:
            status = script.end()
        return status, stopped and not measured

    def _report(self, segments: list[str]) -> Report | None:
        try:
            loaders = in_order(entries_in(segments, iterated=True), "")
        except Error:
            return None
        mine = (one for one in loaders if same_name(one[1]["name"], self.loader))
        return next((report_on(Report, one, "", [], [0]) for one in mine), None)

    def line_to_change(self, changes: Changes) -> str:
        """The line that the user changes to have these parameters."""
        if self._model is None:
            places = ((name.rpartition("."), value) for name, value in changes.items())
            told = [f'pipe.set_{what}("{operator}", {value!r})' for (operator, _, what), value in places]
        else:
            known = {one.name: one.set_in for one in self._model.parameters}
            told = [f"{name}={value!r}, {known[name]}" for name, value in changes.items() if known.get(name)]
        if told:
            return f"{self.loader}: " + "; ".join(told)
        site = self._made_as.rpartition(" at ")[2]
        arguments = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        return f"{site}: DataLoader(..., {arguments})"


def _last_lines(path: str) -> str:
    try:
        lines = Path(path).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f"; its last lines: {' / '.join(line[:_LINE] for line in lines[-_LAST_LINES:])}" if lines else ""
