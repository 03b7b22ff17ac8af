"""From a condition that holds to a finding of the session, and to what the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace import _core
from headrace.common.handlers import let_through
from headrace.common.messages import warn_once
from headrace.common.plain import typed_error_line
from headrace.errors import WatchError
from headrace.record.session import open_session
from headrace.results.figures import Finding
from headrace.results.findings import worst_first
from headrace.watch.findings import Findings, findings_of
from headrace.watch.rules import Hit, Rule

#: Places of one kind that are kept; a model has thousands of parameters.
MAX_PLACES = 20


class Reporting:
    """The findings of one `hr.watch`."""

    def __init__(
        self, on_hit: str | Callable[[Finding], object], conditions: dict[str, dict[str, Any]]
    ) -> None:
        self._on_hit = on_hit
        self._conditions = conditions
        self._findings: dict[tuple[str, str], Finding] = {}
        #: The fault to raise where the user's loop is.
        self._pending: WatchError | None = None
        #: Those that a function of the user's has not been called with.
        self._new: list[Finding] = []

    def parameters(self, kind: str) -> dict[str, Any] | None:
        """None: the condition is off."""
        return self._conditions.get(kind)

    def add(
        self,
        kind: str,
        where: str,
        says: str,
        *,
        cure: str,
        step: int,
        fault: bool = True,
        samples: Iterable[int] = (),
        figures: dict[str, float] | None = None,
    ) -> None:
        """One more step in which ``kind`` holds at ``where``."""
        if kind not in self._conditions:
            return
        key = kind, where
        if key not in self._findings and sum(one == kind for one, _ in self._findings) >= MAX_PLACES:
            return
        findings = _current()
        rule = Rule(kind, "tensors", iter, cure)
        findings.put(
            rule,
            Hit(
                where,
                says,
                [step],
                fault,
                samples=samples,
                figures=figures or {},
                logged=self._on_hit == "say",
            ),
            "",
        )
        if key in self._findings:
            if self._on_hit == "raise":  # whoever caught the first one may have gone on
                self._hit(self._findings[key])
            return
        for one in findings.all(""):
            if (one.kind, one.where) == key:
                self._findings[key] = one
                self._hit(one)

    def replace(self, kind: str, where: str, **changes: str) -> None:
        """More is known by now of what was found."""
        known = self._findings.get((kind, where))
        if known is not None:
            hit = Hit(where, changes["says"], (), True, known.first_step, known.samples, known.figures)
            _current().put(Rule(kind, "tensors", iter, changes["cure"]), hit, "")

    def again(self, kind: str, where: str, step: int) -> None:
        """One more step of what was found before; nothing if it was not."""
        found = self._findings.get((kind, where))
        if found is not None:
            self.add(kind, where, found.says, cure=found.cure, step=step)

    def _hit(self, finding: Finding) -> None:
        if self._on_hit == "raise":
            if finding.severity == "fault" and self._pending is None:
                self._pending = WatchError(finding)
        elif callable(self._on_hit):
            self._new.append(finding)

    def deliver(self) -> None:
        """Call the user's function, outside of what `values.plainly` turns off."""
        while self._new and callable(self._on_hit):
            try:
                self._on_hit(self._new.pop(0))
            except Exception as error:  # noqa: PERF203
                let_through(error)
                warn_once(f"on_hit of hr.watch failed: {typed_error_line(error)}")

    def raise_pending(self) -> None:
        """Called where an error reaches the user's loop with the model and the optimizer whole."""
        self.deliver()
        if self._pending is not None:
            error, self._pending = self._pending, None
            raise error

    def all(self) -> list[Finding]:
        """Faults before notes, and in each the earlier first."""
        return worst_first(list(self._findings.values()))


def _current() -> Findings:
    session = _core.current_session()
    return findings_of(open_session(None, None) if session is None else session)
