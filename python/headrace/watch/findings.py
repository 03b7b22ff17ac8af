"""The findings of a run: an entry for each kind and place, kept in the run folder while it trains."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.common.messages import warn_once
from headrace.common.plain import plain
from headrace.results import process_files
from headrace.results.figures import Finding
from headrace.results.findings import Found
from headrace.watch.rules import Hit, Rule

#: Dataset indices of a finding that are kept.
MAX_SAMPLES = 1000
#: Seconds between two judgements, each of which writes what changed.
JUDGED_EVERY_S = 2.0


class Findings:
    """Those of one session in this process. Thread-safe; never raises into the loop."""

    def __init__(self, session: _core.Session) -> None:
        self._path = process_files.path_of("watch", session.run, session.rank, os.getpid())
        #: By kind, loader and place; the last step that was counted, and whether the log has it.
        self._found: dict[tuple[str, str, str], Found] = {}
        self._last_step: dict[tuple[str, str, str], int] = {}
        self._logged: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._changed = True  # a run that is watched has a file, whatever is found
        #: Called before the findings are saved: each adds what it can say by now.
        self.judges: list[Callable[[], None]] = []
        #: Dataset indices, or contents as numbers below 0, by loader: see `results.findings.ranks_overlap`.
        self.samples_seen: dict[str, list[int]] = {}
        self._random: list[dict[str, Any]] = []
        #: Loaders that are made again in each epoch, by name: the first one, which has the findings of all.
        self.made_again: dict[str, str] = {}
        #: Loaders of one name that read different data: the name, by the name that their findings have.
        self.parts: dict[str, str] = {}
        #: By kind and place, a token of each training that has put them: two of them have a loss each.
        self.trainings: dict[tuple[str, str], list[object]] = {}

    def put(self, rule: Rule, hit: Hit, loader: str) -> Finding | None:
        """``rule`` holds; see `Hit`. Returns what is known now; None: it turned out to be none.

        loader: whose batches; "": of the run, shown with each of its loaders.
        """
        loader = "" if hit.of_run else loader
        key, steps = (rule.kind, loader, hit.where), list(hit.steps)
        with self._lock:
            if not hit.says:
                self._changed |= self._found.pop(key, None) is not None
                return None
            known, last = self._found.get(key), self._last_step.get(key, -1)
            finding = new = _finding(rule, hit, loader)
            if known is None:
                self._found[key], self._changed = Found(new, loader), True
            else:
                finding = known.finding
                first = finding.steps if hit.newest else sum(step <= last for step in steps)
                new.steps = finding.steps + len(steps) - first
                if steps and not hit.newest:
                    new.samples = list(dict.fromkeys([*finding.samples, *new.samples]))[:MAX_SAMPLES]
                    if new.severity == finding.severity:  # the sentence of the first step stays
                        new.says, new.first_step, new.cure = finding.says, finding.first_step, finding.cure
                self._changed |= new != finding
                vars(finding).update(vars(new))
            self._last_step[key] = max([last, *steps])
            logged = hit.logged and key not in self._logged
            if logged:
                self._logged.add(key)
        if known is None:
            self.write()  # the process may be killed by what it found
        if logged:
            warn_once(f"{finding.severity}: {finding.says}. {finding.cure}.")
        return finding

    def keep_samples(self, loader: str, indices: list[int]) -> None:
        """Dataset indices of the first epoch; see `samples_seen`."""
        self.samples_seen.setdefault(loader, []).extend(indices)
        self._changed |= bool(indices)

    def keep_random(self, states: dict[str, Any]) -> None:
        """Random states of a worker; see `random_state`."""
        with self._lock:
            self._random.append(states)
            self._changed = True
        self.write()

    def save(self) -> None:
        """Say what is known by now, and write it."""
        for judge in self.judges:
            judge()
        self.write()

    def write(self) -> None:
        """Write what has changed; a file that cannot be written is said once."""
        with self._lock:
            if not self._changed:
                return
            self._changed = False
            document = {
                "version": 1,
                "findings": [one.as_json() for one in self._found.values()],
                "samples_seen": self.samples_seen,
                "random": self._random,
                "made_again": self.made_again,
                "parts": self.parts,
            }
            text = json.dumps(document)
        try:
            replace_file(self._path, text)
        except (OSError, ValueError) as error:
            warn_once(f"what was found in the data is not kept: {error}")


def _finding(rule: Rule, hit: Hit, loader: str) -> Finding:
    steps = list(hit.steps)
    return Finding(
        kind=rule.kind,
        severity="fault" if hit.fault else "note",
        where=plain(hit.where),
        first_step=steps[0] if steps and hit.first is None else hit.first,
        steps=max(1, len(steps)),
        samples=list(dict.fromkeys(hit.samples))[:MAX_SAMPLES],
        says=plain(f"{loader}: {hit.says}" if loader else hit.says),
        figures={name: float(value) for name, value in hit.figures.items()},
        cure=plain(hit.cure or rule.cure),
    )


_of_session: dict[tuple[_core.Session, int], Findings] = {}
_making = threading.Lock()


def findings_of(session: _core.Session) -> Findings:
    """The findings of ``session`` in this process."""
    key = session, os.getpid()
    with _making:
        if key not in _of_session:
            process_files.before_reading(save_all)
            _of_session[key] = Findings(session)
        return _of_session[key]


def save_all() -> None:
    """The end of the process."""
    for (_, pid), findings in list(_of_session.items()):
        if pid == os.getpid():
            findings.save()
