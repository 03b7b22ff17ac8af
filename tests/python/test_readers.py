"""Headrace where nothing is recorded (HEADRACE_RECORDING=OFF): it reads what was recorded on Linux.

`make readers` builds that module on Linux and names its folder in HEADRACE_READERS. On other systems the
installed package is the one to test, without the helpers of the other tests, which record:

    python -m pytest --noconftest tests/python/test_readers.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as hr
from device_traces import two_steps
from headrace.common.recording import RECORDS

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "verdicts" / "corpus"


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an interpreter whose Headrace only reads."""
    if not RECORDS:
        return dict(os.environ)
    built = os.environ.get("HEADRACE_READERS")
    if not built:
        pytest.skip("no module that only reads: `make readers` builds one, HEADRACE_READERS names its folder")
    folder = tmp_path_factory.mktemp("readers")
    package = folder / "headrace"
    shutil.copytree(
        ROOT / "python" / "headrace", package, ignore=shutil.ignore_patterns("_core*.so", "__pycache__")
    )
    (module,) = Path(built).glob("_core*.so")
    shutil.copy(module, package)
    return {**os.environ, "PYTHONPATH": str(folder)}


def run(readers: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=readers, capture_output=True, text=True, check=False, timeout=100
    )


def printed(readers: dict[str, str], script: str, *arguments: str) -> str:
    done = run(readers, "-c", script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def saved_report(tmp_path: Path) -> Path:
    recorded = json.loads((CORPUS / "loader_too_few_workers_100.json").read_text(encoding="utf-8"))
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"version": 1, "profile": recorded["profile"]}), encoding="utf-8")
    return path


def test_only_reads(readers: dict[str, str]) -> None:
    assert printed(readers, "import headrace; print(headrace._core.RECORDS)").strip() == "False"


def test_loads_a_report(readers: dict[str, str], tmp_path: Path) -> None:
    path = saved_report(tmp_path)
    script = "import sys, headrace as hr; sys.stdout.write(hr.Report.load(sys.argv[1]).to_json())"
    assert json.loads(printed(readers, script, str(path))) == json.loads(hr.Report.load(path).to_json())


def test_loads_a_trace(readers: dict[str, str], tmp_path: Path) -> None:
    path = two_steps().write(tmp_path / "trace.json.gz")
    script = "import sys, headrace as hr; print(hr.Trace.load(sys.argv[1]).kernels().to_dict())"
    assert "gemm" in printed(readers, script, str(path))


@pytest.mark.skipif(not RECORDS, reason="the run is recorded by this test")
def test_reads_a_run_folder(readers: dict[str, str], tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    record = "import sys, headrace as hr\nwith hr.session(run=sys.argv[1]):\n    list(hr.wrap(range(50)))"
    printed(dict(os.environ), record, folder)  # whose process is gone when the folder is read
    whole = hr.Report.load(folder)
    script = "import sys, headrace as hr; sys.stdout.write(hr.Report.load(sys.argv[1]).to_json())"
    assert json.loads(printed(readers, script, folder)) == json.loads(whole.to_json())
    done = run(readers, "-m", "headrace", "timeline", folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "timeline.json.gz").exists()


@pytest.mark.parametrize(
    "call", ["wrap([1])", "operator('decode')", "session()", "Queue(3)", "Pipeline()", "tune([1])"]
)
def test_says_in_one_line_that_recording_needs_linux(readers: dict[str, str], call: str) -> None:
    script = f"import headrace as hr\ntry:\n    hr.{call}\nexcept hr.Error as error:\n    print(error)"
    name = call.split("(")[0]
    (line,) = printed(readers, script).splitlines()
    assert line.startswith(f"headrace.{name} needs Linux: here Headrace reads what was recorded there")


@pytest.mark.parametrize("command", ["run train.py", "demo", "tune train.py", "env", "top"])
def test_commands_that_record_say_so(readers: dict[str, str], command: str) -> None:
    done = run(readers, "-m", "headrace", *command.split())
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"headrace: headrace {command.split()[0]} needs Linux")


def test_commands_that_read(readers: dict[str, str], tmp_path: Path) -> None:
    report = run(readers, "-m", "headrace", "report", str(saved_report(tmp_path)))
    assert report.returncode == 0, report.stderr
    assert "worker" in report.stdout
    trace = run(readers, "-m", "headrace", "trace", str(two_steps().write(tmp_path / "trace.json.gz")))
    assert trace.returncode == 0, trace.stderr


def test_rooms_that_record_say_so(readers: dict[str, str]) -> None:
    done = run(readers, "-c", "import headrace.integrations.lightning")
    assert done.stderr.splitlines()[-1].startswith("headrace.errors.Error: recording needs Linux")
