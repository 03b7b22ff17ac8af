"""What tests share: an environment without a launcher's variables, a run to record, programs to run."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from chromium import Browser
from script_runs import compare, scripts, tune
from stored_reports import RECORDS, StoredReports

__all__ = ["compare", "scripts", "tune"]  # fixtures

# Tests run side by side: threads of a library's pool that wait for each other on busy cores take minutes.
for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(pool, "1")

# Kept between runs, as a user's is: the demo's images are made once.
os.environ["XDG_CACHE_HOME"] = str(Path(tempfile.gettempdir()) / f"headrace-tests-{os.getuid()}")

#: What a launcher, a terminal or a user may have set.
LAUNCHERS = (
    *(
        "HEADRACE",
        "HEADRACE_DIR",
        "HEADRACE_RECORD",
        "RANK",
        "SLURM_PROCID",
        "OMPI_COMM_WORLD_RANK",
        "RANK_ID",
        "TORCHELASTIC_RUN_ID",
        "WORLD_SIZE",
        "SLURM_NTASKS",
        "OMPI_COMM_WORLD_SIZE",
        "RANK_SIZE",
    ),
    *("SLURM_JOB_ID", "MASTER_ADDR", "MASTER_PORT", "MS_SCHED_HOST", "MS_SCHED_PORT", "NO_COLOR", "COLUMNS"),
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


PASSED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make record-cases` runs the tests that store reports, and no others."""
    if RECORDS in os.environ:
        left_out = [item for item in items if "stored" not in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if "stored" in getattr(item, "fixturenames", ())]


@pytest.fixture
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredReports]:
    """``stored(play)``: the report of a loop that `make record-cases` played (stored_reports.py)."""
    reports = StoredReports(request.node, tmp_path)
    yield reports
    if request.node.stash.get(PASSED, False):
        reports.keep()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The folder of a run that is recorded during the test."""
    with hr.session(run=tmp_path / "run"):
        yield tmp_path / "run"


@pytest.fixture
def short_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch waits for 5 s, recorded or not, for a worker of a pass that an error ended."""
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 1.0)


@dataclass
class Result:
    """How a program ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line that it printed."""
        return json.loads(self.out.splitlines()[-1])


class Program:
    """A Python program that runs beside the test, in a folder of its own."""

    def __init__(
        self, source: str, folder: Path, environment: dict[str, str], arguments: tuple[str, ...]
    ) -> None:
        file = folder / f"program_{len(list(folder.glob('program_*.py')))}.py"
        file.write_text(textwrap.dedent(source))
        clean = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
        self.process = subprocess.Popen(
            [sys.executable, str(file), *arguments],
            cwd=folder,
            env={**clean, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, word: str) -> None:
        """Waits until it has printed a line ``word``."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == word:
                return
        raise AssertionError(f"it ended without saying {word!r}: {self.process.communicate()[1]}")

    def result(self, timeout: float = 60) -> Result:
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"it hangs; so far it said:\n{out}\n{err}") from None
        return Result(self.process.returncode, out, err)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """``start(source, *arguments, **environment)`` runs a program; what still runs at the end is killed."""
    running: list[Program] = []

    def begin(source: str, *arguments: object, **environment: str) -> Program:
        running.append(Program(source, tmp_path, environment, tuple(map(str, arguments))))
        return running[-1]

    yield begin
    for program in running:
        if program.process.poll() is None:
            program.process.kill()
            program.process.communicate()


@pytest.fixture
def execute(start: Callable[..., Program]) -> Callable[..., Result]:
    """``execute(source, *arguments, **environment)`` runs a program to its good end."""

    def to_the_end(source: str, *arguments: object, **environment: str) -> Result:
        result = start(source, *arguments, **environment).result()
        assert result.status == 0, f"status {result.status}\n{result.out}\n{result.err}"
        return result

    return to_the_end


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Polls; a machine that is busy with other things gets its time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[..., None]:
    return wait_until


def pytest_configure() -> None:
    """Tests that a script runs in the background ignore Ctrl-C, and so would the programs they interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not os.environ.get("CI"):
        pytest.importorskip("selenium", reason="needs selenium: pip install headrace[test]")
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.driver.quit()
