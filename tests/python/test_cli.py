"""The ``headrace`` command: its answers, its exit status, its one line about what went wrong."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

COMMANDS = {
    "headrace": [str(Path(sys.executable).with_name("headrace"))],
    "python -m headrace": [sys.executable, "-m", "headrace"],
}


def headrace(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMANDS["python -m headrace"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose loop waited most of the time, with a second loader that did not."""
    import time

    folder = tmp_path_factory.mktemp("recorded") / "run"

    def slow() -> Any:
        for number in range(20):
            time.sleep(0.005)
            yield number

    with hr.session(run=folder):
        list(hr.wrap(slow(), name="train"))
        for _ in hr.wrap(range(10), name="valid"):
            time.sleep(0.001)
    return folder


def fails(status: int, *arguments: object) -> str:
    """It exits with ``status``, says one line on stderr and nothing on stdout; the line."""
    result = headrace(*arguments)
    assert (result.returncode, result.stdout) == (status, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("headrace: ")
    return line


@pytest.mark.parametrize("name", COMMANDS)
def test_version(name: str) -> None:
    if name == "headrace" and not Path(COMMANDS[name][0]).exists():
        pytest.skip("not installed as a command")
    result = subprocess.run([*COMMANDS[name], "--version"], capture_output=True, text=True, check=True)
    assert result.stdout == f"headrace, version {hr.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["report", "--help"], ["check", "-h"], ["demo", "--help"]]
)
def test_help(arguments: list[str]) -> None:
    result = headrace(*arguments)
    assert result.returncode == 0
    assert result.stdout.startswith("Usage: headrace")
    assert result.stderr == ""


def test_help_names_every_command() -> None:
    text = headrace("--help").stdout
    for command in ("demo", "run", "report", "check"):
        assert f"\n  {command} " in text


def test_without_arguments_it_shows_its_help() -> None:
    result = headrace()
    assert "Usage: headrace" in result.stdout + result.stderr


class TestReport:
    def test_text(self, recorded: Path) -> None:
        result = headrace("report", recorded)
        assert result.returncode == 0
        assert result.stdout == hr.Report.load(recorded).to_text().rstrip("\n") + "\n"
        assert result.stderr == "other loaders in this run: valid (--loader NAME)\n"

    def test_nothing_coloured_in_a_pipe(self, recorded: Path) -> None:
        assert "\x1b" not in headrace("report", recorded, env={**os.environ, "TERM": "xterm-256color"}).stdout

    def test_json(self, recorded: Path) -> None:
        result = headrace("report", recorded, "--format", "json")
        assert json.loads(result.stdout) == hr.Report.load(recorded).to_dict()
        assert result.stderr == ""

    def test_into_a_file(self, recorded: Path, tmp_path: Path) -> None:
        result = headrace("report", recorded, "--format", "json", "-o", tmp_path / "report.json")
        assert (result.returncode, result.stdout) == (0, "")
        assert hr.Report.load(tmp_path / "report.json").to_dict() == hr.Report.load(recorded).to_dict()
        headrace("report", recorded, "-o", tmp_path / "report.txt")
        assert "INPUT-BOUND" in (tmp_path / "report.txt").read_text(encoding="utf-8")

    def test_one_loader_and_rank(self, recorded: Path) -> None:
        result = headrace("report", recorded, "--loader", "valid", "--rank", 0)
        assert result.stdout.startswith("valid ")
        assert result.stderr == ""

    def test_a_segment_and_a_saved_report(self, recorded: Path, tmp_path: Path) -> None:
        hr.Report.load(recorded).save(tmp_path / "saved.json")
        texts = {
            headrace("report", path).stdout for path in (recorded / "rank0.hrseg", tmp_path / "saved.json")
        }
        assert texts == {headrace("report", recorded).stdout}

    def test_a_reader_that_has_seen_enough(self, recorded: Path) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        result = subprocess.run(
            [*COMMANDS["python -m headrace"], "report", str(recorded)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writing)
        assert "Traceback" not in result.stderr
        assert "Broken pipe" not in result.stderr

    def test_on_a_terminal_it_is_coloured(self, recorded: Path) -> None:
        leader, follower = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "90"}
        command = [*COMMANDS["python -m headrace"], "report", str(recorded)]
        with subprocess.Popen(
            command, stdout=follower, stderr=subprocess.DEVNULL, env=environment
        ) as process:
            os.close(follower)
            output = b""
            while True:
                try:
                    chunk = os.read(leader, 65536)
                except OSError:  # the other side is closed
                    break
                if not chunk:
                    break
                output += chunk
        os.close(leader)
        assert process.returncode == 0
        assert b"\x1b[" in output

    def test_a_terminal_that_wants_no_colour(self, recorded: Path) -> None:
        leader, follower = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1"}
        command = [*COMMANDS["python -m headrace"], "report", str(recorded)]
        with subprocess.Popen(
            command, stdout=follower, stderr=subprocess.DEVNULL, env=environment
        ) as process:
            os.close(follower)
            output = b""
            try:
                while chunk := os.read(leader, 65536):
                    output += chunk
            except OSError:
                pass  # the other side is closed
        os.close(leader)
        assert process.returncode == 0
        assert b"\x1b[" not in output


class TestCheck:
    def test_holds(self, recorded: Path) -> None:
        result = headrace("check", recorded, "--loader", "valid", "--max-wait-share", 0.9)
        assert result.returncode == 0
        assert result.stdout.startswith("ok ")
        assert headrace("check", recorded, "--max-wait-share", 1).returncode == 0

    def test_does_not_hold(self, recorded: Path) -> None:
        result = headrace("check", recorded, "--max-wait-share", 0.05)
        assert result.returncode == 3
        assert result.stdout.startswith("FAILED ")
        assert len(result.stdout.splitlines()) == 1
        assert result.stderr == ""

    def test_fetching_batches_that_are_ready_does_not_count(self, recorded: Path, tmp_path: Path) -> None:
        document = hr.Report.load(recorded).to_dict()
        document["profile"]["sink"] |= {"wait_share": 0.161, "starved_share": 0.038}
        (tmp_path / "saved.json").write_text(json.dumps(document))
        result = headrace("check", tmp_path / "saved.json", "--max-wait-share", 0.05)
        assert result.returncode == 0
        assert "waited 16.1% of the time, 3.8% for a batch that was not ready (at most 5.0%" in result.stdout

    def test_nothing_to_check(self, tmp_path: Path) -> None:
        with hr.session(run=tmp_path / "idle"):
            list(hr.wrap([], name="train"))
        assert "nothing to check" in fails(1, "check", tmp_path / "idle", "--max-wait-share", 0.5)

    @pytest.mark.parametrize("share", ["-0.1", "1.5", "five", "nan"])
    def test_a_share_that_is_none(self, recorded: Path, share: str) -> None:
        fails(2, "check", recorded, "--max-wait-share", share)


class TestErrors:
    def test_wrong_usage(self, recorded: Path) -> None:
        fails(2, "--bogus")
        fails(2, "bogus")
        fails(2, "report")
        fails(2, "report", recorded, "--format", "html5")
        fails(2, "report", recorded, "--rank", "-1")
        fails(2, "report", recorded, "and", "more")
        fails(2, "check", recorded)
        assert "headrace check --help" in fails(2, "check", recorded)

    def test_what_is_not_there(self, recorded: Path, tmp_path: Path) -> None:
        assert "no such file or folder" in fails(1, "report", tmp_path / "missing")
        assert "no loader 'test'" in fails(2, "report", recorded, "--loader", "test")
        assert "no rank 7" in fails(2, "report", recorded, "--rank", 7)
        assert "no such file or folder" in fails(1, "report", tmp_path / "two\nlines")

    def test_empty_and_foreign_folders(self, tmp_path: Path) -> None:
        assert "no recorded run" in fails(1, "report", tmp_path)
        (tmp_path / "events.out.tfevents.1").write_bytes(b"x")
        assert "no recorded run" in fails(1, "check", tmp_path, "--max-wait-share", 0.5)

    def test_broken_files(self, tmp_path: Path) -> None:
        (tmp_path / "rank0.hrseg").write_bytes(b"torn")
        (tmp_path / "saved.json").write_text("{")
        for path in (tmp_path, tmp_path / "rank0.hrseg", tmp_path / "saved.json", Path("/dev/null")):
            fails(1, "report", path)

    def test_a_file_that_cannot_be_written(self, recorded: Path, tmp_path: Path) -> None:
        fails(1, "report", recorded, "-o", tmp_path / "missing" / "report.txt")
        fails(2, "report", recorded, "-o", tmp_path)

    def test_debug_shows_the_traceback(self, tmp_path: Path) -> None:
        result = headrace("--debug", "report", tmp_path / "missing")
        assert result.returncode == 1
        assert "Traceback (most recent call last)" in result.stderr
        assert "headrace.errors.Error" in result.stderr


def test_a_trace_that_cannot_be_used_costs_no_report(recorded: Path, tmp_path: Path) -> None:
    trace = tmp_path / "cpu.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2}
    trace.write_text(json.dumps({"traceEvents": [event]}), encoding="utf-8")
    said = headrace("report", recorded, "--trace", trace)
    assert said.returncode == 2
    assert said.stdout == headrace("report", recorded).stdout
    assert "no work on a device" in said.stderr.splitlines()[-1]
