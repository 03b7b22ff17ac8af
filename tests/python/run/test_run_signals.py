"""Signals reach the script once each, whoever sends them, and the report comes after it has ended."""

import contextlib
import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: Counts the signals that it gets, until it is asked on stdin to end.
COUNTS = """
    import json, signal, sys, time
    counts = {}
    def count(number, frame):
        name = signal.Signals(number).name
        counts[name] = counts.get(name, 0) + 1
        print("got", flush=True)
    for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2"):
        signal.signal(signal.Signals["SIG" + name], count)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(counts))
"""

#: Two recorded loops' worth of steps, then it waits.
RECORDS = """
    import time
    import headrace as hr
    for step in hr.wrap(range(30), name="train"):
        time.sleep(0.002)
    print("ready", flush=True)
    time.sleep(60)
"""

NUMBERS = [
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
]


def next_line(process: Any) -> bytes:
    line: bytes = process.stdout.readline()
    return line


class TestForwarded:
    def test_to_the_command_alone(self, scripts: Any) -> None:
        process = scripts.start_run(scripts.write(COUNTS))
        for number in NUMBERS:
            process.send_signal(number)
            assert next_line(process) == b"got\n"
        result = scripts.finish(process, b"\n")
        assert result.json == {number.name: 1 for number in NUMBERS}
        assert result.status == 0

    def test_to_the_whole_group(self, scripts: Any) -> None:
        process = scripts.start_run(scripts.write(COUNTS), start_new_session=True)
        for number in [*NUMBERS, *NUMBERS]:
            os.killpg(process.pid, number)
            assert next_line(process) == b"got\n"
        assert scripts.finish(process, b"\n").json == {number.name: 2 for number in NUMBERS}

    def test_to_the_group_and_then_to_the_command_alone(self, scripts: Any) -> None:
        process = scripts.start_run(scripts.write(COUNTS), start_new_session=True)
        os.killpg(process.pid, signal.SIGUSR1)
        assert next_line(process) == b"got\n"
        process.send_signal(signal.SIGTERM)
        assert next_line(process) == b"got\n"
        assert scripts.finish(process, b"\n").json == {"SIGUSR1": 1, "SIGTERM": 1}

    def test_what_a_shell_has_switched_off(self, scripts: Any) -> None:
        name = scripts.write("import signal; print('ready', flush=True); input(); print('went on')")
        process = scripts.start_run(
            name,
            preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGHUP, signal.SIGINT)],
        )
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        result = scripts.finish(process, b"\n")
        assert (result.status, result.out) == (0, b"went on\n")


class TestEndedBy:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT])
    def test_a_signal_to_the_command(self, scripts: Any, number: signal.Signals) -> None:
        process = scripts.start_run("--out", "run", scripts.write(RECORDS))
        process.send_signal(number)
        result = scripts.finish(process)
        assert result.status == -number
        assert f"the script was killed by {number.name}" in result.err
        assert "\ntrain · 1 epoch · 30 steps" in result.err

    def test_an_interrupt(self, scripts: Any) -> None:
        process = scripts.start_run("--out", "run", scripts.write(RECORDS), start_new_session=True)
        os.killpg(process.pid, signal.SIGINT)
        result = scripts.finish(process)
        assert result.status == -signal.SIGINT
        assert result.script_err.rstrip().endswith("KeyboardInterrupt")
        assert result.script_err.count("Traceback") == 1
        assert "\ntrain · 1 epoch · 30 steps" in result.said

    def test_sigkill_of_the_script(self, scripts: Any) -> None:
        source = RECORDS.replace("time.sleep(60)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        result = scripts.run("--out", "run", scripts.write(source))
        assert result.status == -signal.SIGKILL
        assert "the script was killed by SIGKILL" in result.said
        assert "\ntrain · 1 epoch · 30 steps" in result.said


class Terminal:
    """A terminal with a process as its session leader, in a thread-free way: read until a word comes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.pid, self.leader = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(command[0], command)
        self.seen = b""

    def says(self, word: bytes) -> None:
        while word not in self.seen:
            self._read()
        self.seen = self.seen.partition(word)[2]

    def line(self) -> bytes:
        """What is left of the line."""
        while b"\r\n" not in self.seen:
            self._read()
        rest, _, self.seen = self.seen.partition(b"\r\n")
        return rest

    def to_the_end(self) -> tuple[int, str]:
        with contextlib.suppress(OSError):  # the other side is closed
            while True:
                self._read()
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status), self.seen.decode()

    def _read(self) -> None:
        readable, _, _ = select.select([self.leader], [], [], 30)
        assert readable, f"nothing more after {self.seen!r}"
        chunk = os.read(self.leader, 65536)
        if not chunk:
            raise OSError("closed")
        self.seen += chunk

    def types(self, keys: bytes) -> None:
        os.write(self.leader, keys)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def begin(*command: str) -> Terminal:
        opened.append(Terminal(list(command), tmp_path))
        return opened[-1]

    yield begin
    for one in opened:
        if one.pid:
            os.kill(one.pid, signal.SIGKILL)
            os.waitpid(one.pid, 0)
        os.close(one.leader)


class TestTerminal:
    def test_control_c(self, scripts: Any, terminal: Callable[..., Terminal]) -> None:
        name = scripts.write(COUNTS)
        opened = terminal(sys.executable, "-m", "headrace", "run", name)
        opened.says(b"ready")
        opened.types(b"\x03")
        opened.says(b"got")
        opened.types(b"\n")
        status, said = opened.to_the_end()
        assert status == 0
        assert '{"SIGINT": 1}' in said

    def test_control_c_that_ends_it(self, scripts: Any, terminal: Callable[..., Terminal]) -> None:
        opened = terminal(sys.executable, "-m", "headrace", "run", "--out", "run", scripts.write(RECORDS))
        opened.says(b"ready")
        opened.types(b"\x03")
        status, said = opened.to_the_end()
        assert status == -signal.SIGINT
        assert said.count("KeyboardInterrupt") == 1
        assert "30 steps" in said
        assert "\x1b[" in said  # a terminal gets its colours

    def test_stopped_and_continued(self, scripts: Any, terminal: Callable[..., Terminal]) -> None:
        name = scripts.write("import os; print('ready', os.getpid(), flush=True); print('read', input())")
        opened = terminal("/bin/bash", "--norc", "-i")
        opened.types(f"{sys.executable} -m headrace run {name}\n".encode())
        opened.says(b"ready ")
        pid = int(opened.line())
        opened.types(b"\x1a")
        opened.says(b"Stopped")
        while " T " not in Path(f"/proc/{pid}/stat").read_text():  # it would still read what is typed
            time.sleep(0.01)
        opened.says(b"bash-")  # the prompt: what is typed before it is lost
        opened.types(b"fg\n")
        opened.says(b"-m headrace run")
        opened.types(b"typed\n")
        opened.says(b"read typed")
        opened.says(b"bash-")
        opened.types(b"exit 0\n")
        assert opened.to_the_end()[0] == 0


def test_the_witness_ends_with_the_command(scripts: Any) -> None:
    process = scripts.start_run(scripts.write(COUNTS), start_new_session=True)

    def members() -> list[str]:
        found = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # ended meanwhile
                if file.read_text().rpartition(")")[2].split()[3] == str(process.pid):
                    found.append(file.parent.name)
        return found

    assert len(members()) == 3  # the command, its witness, the script
    scripts.finish(process, b"\n")
    assert members() == []
