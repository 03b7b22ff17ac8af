"""pytest: the fixture ``headrace_session``, for tests that fail when a loader gets slower.

    def test_the_loader_keeps_up(headrace_session):
        for batch in headrace_session.wrap(make_loader()):
            step(batch)
        headrace_session.check(max_wait_share=0.05)

pytest finds it by itself where Headrace is installed; ``-p no:headrace`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace.results.report import Report

_UPDATE = "--headrace-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headrace")
    group.addoption(_UPDATE, action="store_true", help="write the baselines of headrace_session.check")


class HeadraceSession:
    """The loaders that one test records, in a run folder of its own."""

    def __init__(self, folder: Path, update: bool) -> None:
        #: The run folder, which other commands read as well (``headrace report``).
        self.folder = folder
        self._update = update
        self._wrapped: list[Any] = []

    def wrap(self, loader: Any, name: str | None = None) -> Any:
        """`hr.wrap` into this test's run."""
        import headrace

        wrapped = headrace.wrap(loader, name=name)
        self._wrapped.append(wrapped)
        return wrapped

    def report(self) -> Report:
        """The report of the loader that was waited for longest. Raises UsageError if nothing was wrapped."""
        from headrace.errors import UsageError

        reports: list[Report] = [one.report() for one in self._wrapped]
        if not reports:
            raise UsageError("headrace_session.wrap(loader) comes first: nothing was recorded")
        return max(reports, key=_waited_s)

    def check(
        self,
        *,
        max_wait_share: float | None = None,
        max_step_s: float | None = None,
        baseline: str | Path | None = None,
        max_slowdown: float = 0.05,
    ) -> Report:
        """Fail the test if the loop waited too much, or if its step takes too long. Returns the report.

        max_wait_share: of the time, for batches that are not ready, 0 to 1. max_step_s: mean seconds a step.
        baseline: a saved report of this test (``pytest --headrace-update`` writes it), than which a step may
        take longer by ``max_slowdown``; differences that chance explains do not count (docs/compare.md).
        """
        report = self.report()
        sink = report.profile.sink
        if sink.getnext_wait.count == 0:
            _fail(report, "no complete step was recorded, so there is nothing to check")
        if max_wait_share is not None and sink.starved_share > max_wait_share:
            _fail(
                report,
                f"waited {sink.wait_share:.1%} of the time, {sink.starved_share:.1%} for a batch that was "
                f"not ready, at most {max_wait_share:.1%} allowed",
            )
        if max_step_s is not None and sink.step_s > max_step_s:
            _fail(report, f"a step took {sink.step_s:.4g} s, at most {max_step_s:.4g} s allowed")
        if baseline is not None:
            self._compare(report, Path(baseline), max_slowdown)
        return report

    def _compare(self, report: Report, baseline: Path, max_slowdown: float) -> None:
        from headrace.predict.comparison import Comparison, check_slowdown
        from headrace.results.report import Report

        check_slowdown("max_slowdown", max_slowdown)

        if self._update:
            baseline.parent.mkdir(parents=True, exist_ok=True)
            report.save(baseline)
            return
        if not baseline.exists():
            _fail(report, f"no baseline {baseline}: `pytest {_UPDATE}` writes it")
        comparison = Comparison([Report.load(baseline)], [report])
        if comparison.reason:
            _fail(report, f"cannot be compared with {baseline}: {comparison.reason}")
        step = comparison.step
        if step.changed and step.ratio > 1 + max_slowdown:
            _fail(report, f"a step takes {step.ratio:.3g} times that of {baseline}\n{comparison.to_text()}")


@pytest.fixture
def headrace_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HeadraceSession]:
    """Records the loaders that the test wraps, and checks them: see `HeadraceSession`."""
    import headrace

    folder = tmp_path / "headrace"
    with headrace.session(run=folder, rank=0):
        yield HeadraceSession(folder, request.config.getoption(_UPDATE))


def _waited_s(report: Report) -> float:
    wait = report.profile.sink.getnext_wait
    return wait.mean_s * wait.count


def _fail(report: Report, says: str) -> None:
    from headrace.common.plain import plain

    pytest.fail(f"{plain(report.loader)}: {says}\n\n{report.to_text()}", pytrace=False)
