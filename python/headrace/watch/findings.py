"""What was found wrong in a run: an entry for each kind and place, kept in the run folder while it trains."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core
from headrace.common.messages import warn_once
from headrace.common.plain import plain
from headrace.results.figures import Finding
from headrace.results.findings import Found, path_of

#: More dataset indices than these are counted, not kept.
MOST_SAMPLES = 1000
#: What was found is on disk after so many seconds.
_SAVED_EVERY_S = 2.0


class Findings:
    """Those of one session in this process. Thread-safe; never raises into the loop."""

    def __init__(self, session: _core.Session) -> None:
        self._path = path_of(session.run, session.rank, os.getpid())
        self._found: dict[tuple[str, str, str], Found] = {}
        self._lock = threading.Lock()
        self._changed = False
        self._saved_at = 0.0
        #: Called before the findings are saved: each adds what it can say by now.
        self.judges: list[Callable[[], None]] = []
        #: Called with each finding when it is new.
        self.on_new: list[Callable[[Finding], None]] = []
        #: What `headrace cluster` compares between ranks, by loader (see `Found`).
        self.samples_seen: dict[str, list[int]] = {}

    def add(
        self,
        kind: str,
        where: str,
        says: str,
        *,
        fault: bool,
        cure: str,
        loader: str = "",
        step: int | None = None,
        samples: Iterable[int] = (),
        figures: dict[str, float] | None = None,
    ) -> None:
        """One more step in which ``kind`` holds at ``where``.

        loader: whose batches; "": of the run, shown with each of its loaders. says: one sentence with the
        evidence, without a period; that of the first step stays. step: from 0, in that loader.
        """
        with self._lock:
            found = self._found.get((kind, loader, where))
            is_new = found is None
            if found is None:
                finding = Finding(
                    kind=kind,
                    severity="fault" if fault else "note",
                    where=plain(where),
                    first_step=step,
                    says=plain(says),
                    figures=figures or {},
                    cure=plain(cure),
                )
                found = self._found[kind, loader, where] = Found(finding, loader)
            found.finding.steps += 1
            known = found.finding.samples
            known.extend(one for one in samples if len(known) < MOST_SAMPLES and one not in known)
            self._changed = True
        if is_new:
            for tell in self.on_new:
                tell(found.finding)
            self.save()

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

    def save_sometimes(self) -> None:
        """Called after each batch."""
        if time.monotonic() - self._saved_at > _SAVED_EVERY_S:
            self.save()

    def save(self) -> None:
        """Write what has changed; a file that cannot be written is said once."""
        self._saved_at = time.monotonic()
        for judge in self.judges:
            judge()
        with self._lock:
            if not self._changed:
                return
            self._changed = False
            document = {
                "version": 1,
                "findings": [one.as_json() for one in self._found.values()],
                "samples_seen": self.samples_seen,
            }
        temporary = f"{self._path}.new"
        try:
            with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 5 ms to import
                json.dump(document, file)
            os.replace(temporary, self._path)  # noqa: PTH105
        except (OSError, ValueError) as error:
            warn_once(f"what was found in the data is not kept: {error}")


_of_session: dict[tuple[_core.Session, int], Findings] = {}
_making = threading.Lock()


def findings_of(session: _core.Session) -> Findings:
    """The findings of ``session`` in this process."""
    key = session, os.getpid()
    with _making:
        if key not in _of_session:
            if not _of_session:
                atexit.register(save_all)
            _of_session[key] = Findings(session)
        return _of_session[key]


def save_all() -> None:
    """The end of the process."""
    for (_, pid), findings in list(_of_session.items()):
        if pid == os.getpid():
            findings.save()
