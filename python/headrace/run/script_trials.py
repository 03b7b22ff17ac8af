"""The trials of ``headrace tune``: the script in child processes, each with other parameters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace._search import Changes, Measured, mean_step
from headrace._session import TRIAL
from headrace.errors import Error
from headrace.report import Report
from headrace.run.ending import ending
from headrace.run.environment import recording_environment
from headrace.run.folder import choose_run_folder
from headrace.run.interpreter import python_command
from headrace.run.process_control import die_with
from headrace.run.recorded import recorded_loaders
from headrace.run.scratch import WorkingFolder
from headrace.run.trial import LEAST_STEPS, same_name

#: Time of a script to end by itself after its last step, and then after SIGTERM.
_TO_END_S, _TO_STOP_S = 30.0, 5.0
#: Lines of a script that failed.
_LAST_LINES = 3


class ScriptTrials:
    """Runs one script again and again; measured is the loop that does the steps of a trial first."""

    def __init__(
        self, program: Sequence[str], steps: int, budget_s: float, folder: WorkingFolder,
        alive: Callable[[float], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """alive: called a few times a second while a trial runs, with its seconds so far."""
        self._command = python_command(program)
        self._steps = steps
        self._budget_s = budget_s
        self._folder = folder
        self._alive = alive
        #: The loader that is tuned; empty before the first trial.
        self.loader = ""
        self._made_as = ""
        self._settable: list[str] = []

    @property
    def any_tunable(self) -> bool:
        """False, after the first trial, if no parameter of this loader can be injected."""
        return bool(self._settable)

    def tunable(self, parameter: str) -> bool:
        """True if the parameter can be injected."""
        return parameter in self._settable

    def __call__(self, settings: Changes, limit_s: float) -> Measured:
        with tempfile.TemporaryDirectory(prefix="headrace-trial-") as place, self._folder.entered() as folder:
            result = f"{place}/result.json"
            order = {
                "changes": settings, "loader": self.loader, "made_as": self._made_as, "steps": self._steps,
                "limit_s": limit_s, "result": result,
            }  # fmt: skip
            run = choose_run_folder(f"{place}/run")
            environment = recording_environment(os.environ, run.path)
            environment |= {TRIAL: json.dumps(order), "PWD": folder}
            said = f"{place}/output"
            began = time.monotonic()
            status = self._run(environment, folder, said, result)
            try:
                measured = json.loads(Path(result).read_text())
            except (OSError, ValueError):
                how = ending(status, time.monotonic() - began) or "the script ended"
                raise Error(f"{how} before a loop had {LEAST_STEPS} steps{_last_lines(said)}") from None
            if not self.loader:
                self.loader, self._made_as = measured["loader"], measured["made_as"]
                self._settable = measured["settable"]
            found = mean_step(measured["times"])
            found.report = self._report([path for path, rank in run.new_segments() if rank == 0])
            return found

    def _run(self, environment: dict[str, str], folder: str, said: str, result: str) -> int:
        """To the end of the script, or until its time is over."""
        parent = os.getpid()
        with open(said, "wb") as output:  # noqa: PTH123
            child = subprocess.Popen(
                self._command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=lambda: die_with(parent, signal.SIGTERM),
            )  # fmt: skip
        began = time.monotonic()
        end = began + self._budget_s
        measured = False
        try:
            while child.poll() is None:
                if not measured and Path(result).exists():
                    measured = True
                    end = time.monotonic() + _TO_END_S
                if time.monotonic() > end:
                    break
                self._alive(time.monotonic() - began)
                time.sleep(0.1)
        finally:
            _end(child)
        return child.returncode

    def _report(self, segments: list[str]) -> Report | None:
        try:
            loaders = recorded_loaders(segments)
        except Error:
            return None
        for each in loaders:
            if same_name(each.name, self.loader):
                return each.report([], [0], [])
        return None

    def line_to_change(self, changes: dict[str, Any], report: Report | None) -> str:
        """What the user writes to have these parameters."""
        model = report.profile.model if report is not None else None
        if model is None:
            calls = [_live_call(parameter, value) for parameter, value in changes.items()]
            return f"{self.loader}: " + "; ".join(calls)
        known = {one.name: one.set_in for one in model.parameters}
        told = [f"{name}={value!r}, {known[name]}" for name, value in changes.items() if known.get(name)]
        if told:
            return f"{self.loader}: " + "; ".join(told)
        site = self._made_as.rpartition(" at ")[2]
        arguments = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        return f"{site}: DataLoader(..., {arguments})"


def _live_call(parameter: str, value: Any) -> str:
    operator, _, what = parameter.rpartition(".")
    return f'pipe.set_{what}("{operator}", {value!r})'


def _end(child: subprocess.Popen[bytes]) -> None:
    """The script's whole session: workers that outlive it would disturb the next trial."""
    for number, patience_s in ((signal.SIGTERM, _TO_STOP_S), (signal.SIGKILL, _TO_STOP_S)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        if number == signal.SIGTERM and child.poll() is not None:
            continue  # what is left of it are workers
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            pass
    child.wait()


def _last_lines(path: str) -> str:
    try:
        lines = Path(path).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f"; its last lines: {' / '.join(lines[-_LAST_LINES:])}" if lines else ""
