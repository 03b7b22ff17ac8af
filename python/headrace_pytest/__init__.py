"""pytest: a marker, a fixture and a flag, for tests that fail when a loader gets slower.

    @pytest.mark.headrace(max_wait=0.05)
    def test_the_loader_keeps_up():
        for batch in DataLoader(...):
            step(batch)

    def test_one_of_several(headrace_session):
        for batch in headrace_session.wrap(make_loader()):
            step(batch)
        headrace_session.check(max_wait_share=0.05)

``pytest --headrace`` prints a line for each loader that a test iterated. pytest finds the plugin by itself
where Headrace is installed, and imports nothing else of it where none of the three is used;
``-p no:headrace`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace.results.report import Report

_UPDATE = "--headrace-update"
_EVERY = "--headrace"
_NO_LOOP = "no loop over a DataLoader or a wrapped loader was recorded; other loaders need hr.wrap(loader)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("headrace")
    group.addoption(
        _EVERY, action="store_true", help="record the loaders of every test, and say what limits them"
    )
    group.addoption(_UPDATE, action="store_true", help="write the baselines that tests compare with")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "headrace(max_wait, max_step_s, baseline, max_slowdown): fail the test if a loop in it waits for its "
        "loader for more than that share of the time, or if its step takes longer",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Records the loaders of a marked test, and of every one with ``--headrace``."""
    marker = pyfuncitem.get_closest_marker("headrace")
    if marker is None and not pyfuncitem.config.getoption(_EVERY):
        yield
        return
    from headrace.common.plain import plain
    from headrace.record.session import enabled
    from headrace.show.in_process import recorded_loops

    if not enabled():
        yield
        return
    with recorded_loops() as reports:
        outcome: Any = yield
        found = reports()
    # Properties of a test reach the process that prints, also from pytest-xdist's.
    lines = [f"{pyfuncitem.nodeid}: {plain(report.loader)}: {report.diagnosis}" for report in found]
    pyfuncitem.user_properties += [("headrace", line) for line in lines]
    if marker is None or outcome.excinfo is not None:
        return
    update = pyfuncitem.config.getoption(_UPDATE)
    try:
        if not found:
            pytest.fail(_NO_LOOP, pytrace=False)
        for report in found:
            _check(report, update, *marker.args, **marker.kwargs)
    except (Exception, pytest.fail.Exception) as error:
        outcome.force_exception(error)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if terminalreporter.config.getoption(_EVERY):
        terminalreporter.section("headrace")
        tests = [test for tests in terminalreporter.stats.values() for test in tests]
        ended = [test for test in tests if getattr(test, "when", "") == "call"]
        lines = [line for test in ended for name, line in test.user_properties if name == "headrace"]
        for line in lines or [_NO_LOOP]:
            terminalreporter.line(line)


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
        from headrace.show.in_process import waited_s

        reports: list[Report] = [one.report() for one in self._wrapped]
        if not reports:
            raise UsageError("headrace_session.wrap(loader) comes first: nothing was recorded")
        return max(reports, key=waited_s)

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
        take longer by ``max_slowdown``; differences that chance explains do not count (docs/tune.md).
        """
        report = self.report()
        _check(report, self._update, max_wait_share, max_step_s, baseline, max_slowdown)
        return report


def _check(
    report: Report,
    update: bool,
    max_wait: float | None = None,
    max_step_s: float | None = None,
    baseline: str | Path | None = None,
    max_slowdown: float = 0.05,
) -> None:
    from headrace.predict.checks import wait_of, waits_at_most

    sink = report.profile.sink
    if sink.getnext_wait.count == 0:
        _fail(report, "no complete step was recorded, so there is nothing to check")
    if max_wait is not None and not (wait := waits_at_most(wait_of(report), max_wait)).holds:
        _fail(report, wait.says)
    if max_step_s is not None and sink.step_s > max_step_s:
        _fail(report, f"a step took {sink.step_s:.4g} s, at most {max_step_s:.4g} s allowed")
    if baseline is not None:
        _compare(report, Path(baseline), max_slowdown, update)


def _compare(report: Report, baseline: Path, max_slowdown: float, update: bool) -> None:
    from headrace.predict.checks import not_slower
    from headrace.predict.comparison import Comparison, check_slowdown
    from headrace.results.report import Report

    check_slowdown("max_slowdown", max_slowdown)
    if update:
        baseline.parent.mkdir(parents=True, exist_ok=True)
        report.save(baseline)
        return
    if not baseline.exists():
        _fail(report, f"no baseline {baseline}: `pytest {_UPDATE}` writes it")
    comparison = Comparison([Report.load(baseline)], [report])
    if comparison.reason:
        _fail(report, f"cannot be compared with {baseline}: {comparison.reason}")
    if not not_slower(comparison, max_slowdown):
        says = f"a step takes {comparison.step.ratio:.3g} times that of {baseline}"
        _fail(report, f"{says}\n{comparison.to_text()}")


@pytest.fixture
def headrace_session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HeadraceSession]:
    """Records the loaders that the test wraps, and checks them: see `HeadraceSession`."""
    import headrace

    folder = tmp_path / "headrace"
    with headrace.session(run=folder, rank=0):
        yield HeadraceSession(folder, request.config.getoption(_UPDATE))


def _fail(report: Report, says: str) -> None:
    from headrace.common.plain import plain

    pytest.fail(f"{plain(report.loader)}: {says}\n\n{report.to_text()}", pytrace=False)
