"""Scripts under ``headrace run``, and the same scripts bare, to compare."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HEADRACE = [sys.executable, "-m", "headrace"]


@dataclass
class Outcome:
    """How a command ended and what it wrote."""

    status: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """The last line of stdout."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def script_err(self) -> str:
        """stderr up to the first line of Headrace: the script's own."""
        return self.err.partition("headrace: ")[0]

    @property
    def said(self) -> str:
        """stderr from the first line of Headrace on."""
        return self.err[len(self.script_err) :]


def _default_signals() -> None:
    """Under nohup, in a shell's background or in a service some signals are ignored, here and in children."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Scripts:
    """Runs scripts in one folder; ``environment`` and ``input`` as for subprocess."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def write(self, source: str, name: str = "script.py") -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return name

    def start(self, command: list[str], **options: Any) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, **options.pop("environment", {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options.setdefault("preexec_fn", _default_signals)
        process = subprocess.Popen(command, cwd=self.folder, env=environment, **{**pipes, **options})
        self.running.append(process)
        return process

    def bare(self, *command: object, **options: Any) -> Outcome:
        """``python *command``"""
        return self._finish([sys.executable, *map(str, command)], **options)

    def run(self, *command: object, **options: Any) -> Outcome:
        """``headrace run *command``"""
        return self._finish([*HEADRACE, "run", *map(str, command)], **options)

    def start_run(self, *command: object, **options: Any) -> "subprocess.Popen[bytes]":
        """``headrace run *command``, once the script has written a line ``ready``."""
        process = self.start([*HEADRACE, "run", *map(str, command)], **options)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == b"ready\n", line + self.finish(process).err.encode()
        return process

    def _finish(self, command: list[str], **options: Any) -> Outcome:
        given = options.pop("input", b"")
        return self.finish(self.start(command, **options), given)

    def finish(self, process: "subprocess.Popen[bytes]", given: bytes = b"", timeout: float = 90) -> Outcome:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"it hangs; so far it said:\n{out!r}\n{err!r}") from None
        return Outcome(process.returncode, out or b"", (err or b"").decode())


@pytest.fixture
def scripts(tmp_path: Path) -> Iterator[Scripts]:
    made = Scripts(tmp_path)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def compare(scripts: Scripts) -> Callable[..., Outcome]:
    """``compare(*command)``: same status, same output byte for byte, same errors, bare and recorded."""

    def both(*command: object, **options: Any) -> Outcome:
        bare = scripts.bare(*command, **options)
        recorded = scripts.run(*command, **options)
        assert (recorded.status, recorded.out, recorded.script_err) == (bare.status, bare.out, bare.err)
        return recorded

    return both


@pytest.fixture
def tune(scripts: Any) -> Callable[..., Any]:
    """``tune(source, *options, *, arguments=())`` runs ``headrace tune`` in a folder of its own."""
    scripts.folder = scripts.folder / "project"
    scripts.folder.mkdir()

    def command(source: str, *options: str, arguments: tuple[str, ...] = ()) -> Any:
        script = scripts.write(source)
        given = ["--steps", "30", "--budget", "60s", *options]
        program = [sys.executable, "-m", "headrace", "tune", *given, script, *arguments]
        return scripts.finish(scripts.start(program))

    return command
