"""What was found wrong in a run: an entry for each kind and place, kept in the run folder while it trains."""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core
from headrace.common.folder_files import replace_file
from headrace.common.messages import warn_once
from headrace.common.plain import plain
from headrace.results import process_files
from headrace.results.figures import Finding
from headrace.results.findings import Found

#: More dataset indices than these are counted, not kept.
MOST_SAMPLES = 1000


class Findings:
    """Those of one session in this process. Thread-safe; never raises into the loop."""

    def __init__(self, session: _core.Session) -> None:
        self._path = process_files.path_of("watch", session.run, session.rank, os.getpid())
        self._found: dict[tuple[str, str, str], Found] = {}
        self._lock = threading.Lock()
        self._changed = True  # a run that is watched has a file, whatever is found
        #: Called before the findings are saved: each adds what it can say by now.
        self.judges: list[Callable[[], None]] = []
        #: Dataset indices by loader, which reports compare between ranks (`results.findings.ranks_overlap`).
        self.samples_seen: dict[str, list[int]] = {}
        self._random: list[dict[str, Any]] = []
        #: Loaders that are made again in each epoch, by name: the first one, which has the findings of all.
        self.made_again: dict[str, str] = {}
        #: Of loaders of one name that read different data: the name, by that of its findings.
        self.parts: dict[str, str] = {}

    def add(self, kind: str, where: str, says: str, **more: Any) -> None:
        """One more step in which ``kind`` holds at ``where``; the sentence of the first one stays.

        The other parameters are those of `tell`.
        """
        self._tell(kind, where, says, keep=True, **more)

    def tell(self, kind: str, where: str, says: str, **more: Any) -> None:
        """Replaces what was told of ``kind`` at ``where`` by what is known now.

        loader: whose batches; "": of the run, shown with each of its loaders. says: one sentence with the
        evidence, without a period. fault: False: it may be meant so, a note. step: the first one, from 0, in
        that loader. samples: dataset indices. say: in the log, when it is new.
        """
        self._tell(kind, where, says, keep=False, **more)

    def _tell(
        self,
        kind: str,
        where: str,
        says: str,
        *,
        keep: bool,
        fault: bool,
        cure: str,
        loader: str = "",
        step: int | None = None,
        samples: Iterable[int] = (),
        figures: dict[str, float] | None = None,
        say: bool = True,
    ) -> None:
        listed = list(samples)[:MOST_SAMPLES]
        with self._lock:
            known = self._found.get((kind, loader, where))
            if known is not None and keep:
                known.finding.steps += 1
                room = MOST_SAMPLES - len(known.finding.samples)
                known.finding.samples += [one for one in listed if one not in known.finding.samples][:room]
            else:
                finding = Finding(
                    kind=kind,
                    severity="fault" if fault else "note",
                    where=plain(where),
                    first_step=step,
                    steps=1,
                    samples=listed,
                    says=plain(says),
                    figures={name: float(value) for name, value in (figures or {}).items()},
                    cure=plain(cure),
                )
                self._found[kind, loader, where] = Found(finding, loader)
            self._changed = True
        if known is None:
            self.write()  # the process may be killed by what it found
            if say:
                _say(finding)

    def say(self, kind: str, where: str, loader: str) -> None:
        """In the log, once."""
        with self._lock:
            found = self._found.get((kind, loader, where))
        if found is not None:
            _say(found.finding)

    def keep_samples(self, loader: str, indices: list[int]) -> None:
        """Dataset indices of the first epoch; see `samples_seen`."""
        self.samples_seen.setdefault(loader, []).extend(indices)
        self._changed = True

    def keep_random(self, states: dict[str, Any]) -> None:
        """What a worker says of its random numbers; see `random_state`."""
        with self._lock:
            self._random.append(states)
            self._changed = True
        self.write()

    def replace(self, kind: str, where: str, loader: str, **changes: Any) -> None:
        """What is known by now of something that was added: its sentence, its figures, its severity."""
        with self._lock:
            found = self._found.get((kind, loader, where))
            if found is not None:
                for name, value in changes.items():
                    setattr(found.finding, name, value)
                self._changed = True

    def withdraw(self, kind: str, where: str, loader: str) -> None:
        """It turned out to be none."""
        with self._lock:
            if self._found.pop((kind, loader, where), None) is not None:
                self._changed = True

    def all(self, loader: str | None = None) -> list[Finding]:
        """Those of a loader and of the run; None: all."""
        with self._lock:
            return [
                one.finding for one in self._found.values() if loader is None or one.loader in ("", loader)
            ]

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


def _say(finding: Finding) -> None:
    warn_once(f"{finding.severity}: {finding.says}. {finding.cure}.")


_of_session: dict[tuple[_core.Session, int], Findings] = {}
_making = threading.Lock()


def findings_of(session: _core.Session) -> Findings:
    """The findings of ``session`` in this process."""
    key = session, os.getpid()
    with _making:
        if key not in _of_session:
            if not _of_session:
                atexit.register(save_all)
                process_files.before_reading.append(save_all)
            _of_session[key] = Findings(session)
        return _of_session[key]


def save_all() -> None:
    """The end of the process."""
    for (_, pid), findings in list(_of_session.items()):
        if pid == os.getpid():
            findings.save()
