"""Loops of real threads and processes on the clock of this machine: no gate, a rate."""

from _pytest.terminal import TerminalReporter


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    passed, failed = (len(terminalreporter.stats.get(outcome, ())) for outcome in ("passed", "failed"))
    terminalreporter.write_line(f"in real time: {passed} of {passed + failed}")
