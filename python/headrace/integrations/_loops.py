"""The DataLoaders of a trainer's loops: recorded while it runs, judged after each epoch."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace import _core
from headrace.common.loader_names import unnumbered
from headrace.errors import Error
from headrace.export._metrics import scalars
from headrace.loaders.torch_dataloader import loaders, record_every_loader
from headrace.record.session import Session, enabled, session
from headrace.results.live_ranks import LiveRanks, LoopLive, local_segments
from headrace.results.report import Report, report_of_loop
from headrace.results.sentences import advice, cost, live_lines, verdict
from headrace.run.environment import records_already


class Epoch(NamedTuple):
    """One loader after an epoch."""

    #: "train", "validation", "test" or "predict"; of several loaders for the same, their names.
    what: str
    #: Since the beginning.
    report: Report
    #: ``train/wait_ratio`` and so on, of this epoch.
    figures: dict[str, float]
    #: Its ranks on this machine, now.
    live: LoopLive

    @property
    def sentence(self) -> str:
        """The exposed wait, verdict, what it costs, what to do; for a log."""
        said = [
            *live_lines(self.live),
            verdict(self.report),
            cost(self.report.profile),
            *advice(self.report)[:1],
        ]
        return f"headrace: {self.what}: {' | '.join(said)}"


class Loops:
    """From `begin` to `end` every DataLoader that is iterated is recorded, as by ``headrace run``.

    Below ``headrace run`` it joins that recording, whatever ``run`` is. With ``HEADRACE=0`` it does nothing.
    """

    def __init__(self, run: str | os.PathLike[str] | None = None, role_now: Callable[[], str] = str) -> None:
        """run: the run folder; None: as for `hr.wrap`. role_now: what a loop that begins now is for."""
        self._run = run
        self._role_now = role_now
        self._session: Session | None = None
        self._began = False
        self._live = LiveRanks(local_segments)
        #: With their roles, the records that were seen, and their steps when they were last reported.
        self._seen: list[tuple[weakref.ref[_core.LoaderHandle], str]] = []
        self._reported: weakref.WeakKeyDictionary[_core.LoaderHandle, int] = weakref.WeakKeyDictionary()
        #: Reports since the beginning, by what they are of: the newest of each.
        self.reports: dict[str, Report] = {}

    def begin(self, rank: int | None = None) -> None:
        """rank: None: as for `hr.wrap`, from what the launcher set. Idempotent."""
        if self._began or not enabled():
            return
        self._began = True
        run = None if records_already(os.environ) else self._run
        if run is not None or rank is not None:
            self._session = session(run, rank)
            self._session.__enter__()
        self._by_run = loaders.records_all()
        loaders.set_watcher(self)
        record_every_loader()

    def end(self) -> None:
        """The recording of this trainer is over."""
        if not self._began:
            return
        self._began = False
        loaders.set_watcher(None)
        if not self._by_run:
            loaders.record_only_wrapped()
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None

    def epoch(self, only: str | None = None) -> list[Epoch]:
        """The loaders that went on since the last call; ``only`` those of this role.

        Never fails: what cannot be read is left out.
        """
        found: list[Epoch] = []
        for record, role in self._alive():
            if only is not None and role not in (only, ""):
                continue
            try:
                report = report_of_loop(record)
            except Error:
                continue
            steps = report.profile.sink.steps
            if steps <= self._reported.get(record, 0):
                continue
            self._reported[record] = steps
            what = self._name(record, role)
            self.reports[what] = report
            live = self._live.of_loader(report.loader)
            of_epoch = scalars(_last_epoch(record) or report, live).items()
            figures = {f"{what}/{name}": value for name, value in of_epoch if _is_shown(name)}
            found.append(Epoch(what, report, figures, live))
        return found

    # --- called by `loaders` ---

    def role(self) -> str:
        return self._role_now()

    def recorded(self, record: _core.LoaderHandle, role: str) -> None:
        self._seen = [(known, of) for known, of in self._seen if known() not in (None, record)]
        self._seen.append((weakref.ref(record), role))

    def _alive(self) -> list[tuple[Any, str]]:
        return [(record, role) for known, role in self._seen if (record := known()) is not None]

    def _name(self, record: _core.LoaderHandle, role: str) -> str:
        # A framework that makes a loader anew for each epoch may keep the earlier one meanwhile.
        name = unnumbered(record.name)
        others = (unnumbered(other.name) for other, of in self._alive() if of == role)
        return role if role and all(other == name for other in others) else record.name


def _last_epoch(handle: _core.LoaderHandle) -> Report | None:
    """The report of the loop that has ended. A framework may have begun the next one."""
    for number in (-1, -2):
        try:
            report = report_of_loop(handle, number)
        except Error:
            return None
        if report.profile.sink.steps > 1:
            return report
    return None


def _is_shown(name: str) -> bool:
    """Figures of the loop, and the demand of its operators. A loader of 64 workers has hundreds of others."""
    return "/" not in name or name.startswith("operator_demand_seconds/")
