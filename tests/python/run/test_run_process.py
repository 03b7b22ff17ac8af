"""A script under ``headrace run`` is a true ``python script``: status, output, arguments, module, signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: What `headrace run` adds to the environment.
OURS = ("HEADRACE_DIR", "HEADRACE_FOUND", "HEADRACE_RECORD", "PYTHONPATH")

ABOUT = f"""
    import json, os, sys
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({{
        "name": __name__, "file": __file__, "package": __package__,
        "spec": getattr(__spec__, "name", None), "loader": type(__loader__).__name__,
        "arguments": sys.argv, "path": sys.path, "flags": str(sys.flags), "warnings": sys.warnoptions,
        "options": sorted(sys._xoptions), "executable": sys.executable, "folder": os.getcwd(),
        "unbuffered": sys.stdout.write_through, "group": os.getpgid(0), "session": os.getsid(0),
        "environment": {{k: v for k, v in os.environ.items() if k not in {OURS!r}}},
        "signals": [status[kind].strip() for kind in ("SigBlk", "SigIgn", "SigCgt")],
        "torch": "torch" in sys.modules, "headrace": "headrace" in sys.modules,
        "site": "sitecustomize" in sys.modules,
    }}))
"""


class TestEnd:
    @pytest.mark.parametrize(
        ("ending", "status"),
        [
            ("pass", 0),
            ("sys.exit(3)", 3),
            ("sys.exit('a last word')", 1),
            ("def fail(): raise RuntimeError('the user\\'s')\nfail()", 1),
            ("sys.stdout.flush(); os._exit(7)", 7),
            ("sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
            ("sys.stdout.flush(); os.kill(os.getpid(), signal.SIGRTMIN + 3)", -signal.SIGRTMIN - 3),
        ],
    )
    def test_is_the_scripts(
        self, scripts: Any, compare: Callable[..., Any], ending: str, status: int
    ) -> None:
        name = scripts.write(f"import os, signal, sys\nprint('said')\n{ending}\n")
        assert compare(name).status == status

    def test_by_abort_leaves_no_core_dump_of_the_parent(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(
            "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nos.abort()"
        )
        before = set(tmp_path.iterdir())
        assert scripts.run(name).status == -signal.SIGABRT
        assert set(tmp_path.iterdir()) == before

    def test_with_nobody_listening_on_stderr(self, scripts: Any) -> None:
        name = scripts.write("import sys; sys.exit(5)")
        reading, writing = os.pipe()
        os.close(reading)
        process = scripts.start([sys.executable, "-m", "headrace", "run", name], stderr=writing)
        os.close(writing)
        assert scripts.finish(process).status == 5

    def test_with_stderr_closed(self, scripts: Any) -> None:
        name = scripts.write("import sys; print('out'); sys.exit(5)")
        command = f"{sys.executable} -m headrace run {name} 2>&-"
        result = scripts.finish(scripts.start(["sh", "-c", command]))
        assert (result.status, result.out) == (5, b"out\n")

    def test_of_a_shell_that_ignores_its_children(self, scripts: Any) -> None:
        name = scripts.write("import sys; sys.exit(6)")
        process = scripts.start(
            [sys.executable, "-m", "headrace", "run", name],
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )
        assert scripts.finish(process).status == 6


class TestOutputAndInput:
    def test_bytes_stay_bytes(self, scripts: Any, compare: Callable[..., Any]) -> None:
        name = scripts.write(
            """
            import os, sys
            sys.stdout.buffer.write(bytes(range(256)) * 300)
            sys.stdout.flush()
            os.write(1, b"no newline at the end")
            os.write(2, b"a warning\\n")
            """
        )
        assert len(compare(name).out) == 256 * 300 + 21

    def test_stdin(self, scripts: Any, compare: Callable[..., Any]) -> None:
        name = scripts.write("import sys; print(repr(sys.stdin.buffer.read()))")
        assert compare(name, input=b"one\ntwo\0\xff").out == b"b'one\\ntwo\\x00\\xff'\n"

    def test_a_program_on_stdin(self, compare: Callable[..., Any]) -> None:
        assert compare("-", "x", input=b"import sys; print(sys.argv)").out == b"['-', 'x']\n"

    def test_an_open_file_of_the_shell(self, scripts: Any) -> None:
        name = scripts.write("import os, sys; os.write(int(sys.argv[1]), b'through')")
        reading, writing = os.pipe()
        process = scripts.start(
            [sys.executable, "-m", "headrace", "run", name, str(writing)], pass_fds=[writing]
        )
        os.close(writing)
        assert scripts.finish(process).status == 0
        assert os.read(reading, 100) == b"through"
        os.close(reading)

    @pytest.mark.parametrize(
        "fault", ["def broken(:", "raise ValueError('at top level')", "import not_there_at_all", "1/0"]
    )
    def test_tracebacks(self, scripts: Any, compare: Callable[..., Any], fault: str) -> None:
        name = scripts.write(f"import os\n{fault}\n")
        result = compare(name)
        assert result.status == 1
        assert "Error" in result.script_err
        assert "the script ended with status 1" in result.said


class TestProgram:
    def about(self, scripts: Any, *command: object, **options: Any) -> Any:
        """What the program sees of itself; the same bare and recorded, but for its process group."""
        bare = scripts.bare(*command, start_new_session=True, **options).json
        recorded = scripts.run(*command, start_new_session=True, **options).json
        for seen in (bare, recorded):
            del seen["group"], seen["session"], seen["environment"]["_"]
            # 32 and 33 are the C library's own, in a process with threads.
            seen["signals"][2] = int(seen["signals"][2], 16) & ~(3 << 31)
        assert recorded == bare
        return recorded

    @pytest.fixture(autouse=True)
    def _underscore(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("_", "python")

    def test_script(self, scripts: Any) -> None:
        scripts.write(ABOUT, "folder/script.py")
        seen = self.about(scripts, "folder/script.py", "a")
        assert (seen["name"], seen["spec"], seen["arguments"]) == (
            "__main__",
            None,
            ["folder/script.py", "a"],
        )
        assert seen["path"][0].endswith("folder")
        assert not seen["headrace"]

    def test_module_of_a_package(self, scripts: Any) -> None:
        scripts.write("where = 'relative'", "package/sibling.py")
        scripts.write("from .sibling import where\n" + ABOUT.replace("\n    ", "\n"), "package/train.py")
        seen = self.about(scripts, "-m", "package.train", "--help")
        assert (seen["spec"], seen["package"]) == ("package.train", "package")
        assert seen["arguments"][1:] == ["--help"]

    def test_folder_with_a_main(self, scripts: Any) -> None:
        scripts.write(ABOUT, "program/__main__.py")
        assert self.about(scripts, "program")["path"][0].endswith("program")

    def test_users_own_path(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(ABOUT)
        seen = self.about(scripts, name, environment={"PYTHONPATH": f"{tmp_path}/lib::{tmp_path}/more"})
        assert f"{tmp_path}/lib" in seen["path"]

    def test_arguments(self, scripts: Any) -> None:
        name = scripts.write(ABOUT)
        arguments = ["--help", "-h", "--out", "x", "--", "-m", "--version", "", "two words", "é", "*", "--"]
        assert self.about(scripts, name, *arguments)["arguments"] == [name, *arguments]

    def test_flags_of_the_interpreter(self, scripts: Any) -> None:
        name = scripts.write(ABOUT)
        flags = ["-u", "-X", "dev", "-Wignore::UserWarning", "-OO", "-m"]
        bare = scripts.finish(scripts.start([sys.executable, *flags[:-1], name], start_new_session=True))
        command = [sys.executable, *flags, "headrace", "run", name]
        recorded = scripts.finish(scripts.start(command, start_new_session=True))
        for key in ("flags", "warnings", "options", "unbuffered"):
            assert recorded.json[key] == bare.json[key]
        assert recorded.json["unbuffered"]

    def test_it_is_in_the_process_group_of_the_command(self, scripts: Any) -> None:
        name = scripts.write("import os; print(os.getpgid(0) == os.getpgid(os.getppid()))")
        assert scripts.run(name).out == b"True\n"

    def test_a_site_customisation_of_the_user(self, scripts: Any, compare: Callable[..., Any]) -> None:
        scripts.write("import sys; sys.customised = __file__", "own/sitecustomize.py")
        name = scripts.write(
            "import sys; import sitecustomize; print(sys.customised, sitecustomize.__file__)"
        )
        result = compare(name, environment={"PYTHONPATH": str(scripts.folder / "own")})
        assert result.out.count(b"own/sitecustomize.py") == 2

    def test_a_site_customisation_that_fails(self, scripts: Any) -> None:
        scripts.write("raise RuntimeError('of the site')", "own/sitecustomize.py")
        name = scripts.write("print('runs')")
        own = {"PYTHONPATH": str(scripts.folder / "own")}
        bare, recorded = scripts.bare(name, environment=own), scripts.run(name, environment=own)
        assert "of the site" in bare.err
        assert recorded.script_err == 2 * bare.err  # `headrace run` is a Python process as well
        assert (recorded.status, recorded.out) == (0, b"runs\n")


class TestBadInput:
    def one_line(self, outcome: Any, status: int) -> str:
        assert (outcome.status, outcome.out) == (status, b"")
        (line,) = outcome.err.splitlines()
        assert line.startswith("headrace: ")
        return str(line)

    def test_no_script(self, scripts: Any) -> None:
        assert "SCRIPT" in self.one_line(scripts.run(), 2)
        assert "SCRIPT" in self.one_line(scripts.run("-m"), 2)
        assert "headrace run --help" in self.one_line(scripts.run("--bogus", "x.py"), 2)

    def test_a_script_that_is_not_there(self, scripts: Any, tmp_path: Path) -> None:
        assert "missing.py: no such script" in self.one_line(scripts.run("missing.py", "--out", "x"), 2)
        assert "missing/" in self.one_line(scripts.run("--out", "made", "missing/train.py"), 2)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder(self, scripts: Any, tmp_path: Path) -> None:
        assert "__main__.py" in self.one_line(scripts.run(tmp_path), 2)

    def test_an_empty_out(self, scripts: Any) -> None:
        name = scripts.write("print('never')")
        assert "--out" in self.one_line(scripts.run("--out", "", name), 2)

    def test_a_module_that_is_not_there(self, compare: Callable[..., Any]) -> None:
        result = compare("-m", "not_there.at_all")
        assert result.status == 1
        assert "No module named" in result.script_err

    @pytest.mark.parametrize("out", ["file/run", "file", "/proc/run"])
    def test_a_folder_that_cannot_be_made(self, scripts: Any, out: str) -> None:
        scripts.write("", "file")
        name = scripts.write("print('runs')")
        result = scripts.run("--out", out, name)
        assert (result.status, result.out) == (0, b"runs\n")
        warnings = [line for line in result.err.splitlines() if "cannot record in" in line]
        assert len(warnings) == 1
        assert out in warnings[0]


class TestSwitchedOff:
    def test_the_script_just_runs(self, scripts: Any, tmp_path: Path) -> None:
        name = scripts.write(
            """
            import os, sys
            import headrace as hr
            list(hr.wrap([1, 2]))
            print("HEADRACE_RECORD" in os.environ, os.environ.get("PYTHONPATH"))
            sys.exit(4)
            """
        )
        result = scripts.run(name, environment={"HEADRACE": "0"})
        assert (result.status, result.out, result.err) == (4, b"False None\n", "")
        assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_without_the_parent_the_script_is_told_to_end(scripts: Any) -> None:
    name = scripts.write(
        """
        import os, signal, time
        def told(number, frame):
            open("told", "w").write(signal.Signals(number).name)
            os._exit(0)
        signal.signal(signal.SIGTERM, told)
        print("ready", flush=True)
        time.sleep(60)
        """
    )
    process = scripts.start_run(name)
    process.kill()
    process.communicate()  # until the script, too, has closed its end
    assert (scripts.folder / "told").read_text() == "SIGTERM"


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (["python", "-m", "headrace", "run"], []),
        (["python", "/bin/headrace", "-u"], []),
        (["python", "-u", "-m", "headrace", "-O"], ["-u"]),
        (["python", "-um", "headrace"], ["-u"]),
        (["python", "-mheadrace", "run"], []),
        (
            ["python", "-X", "dev", "-Xutf8", "-W", "error", "-Wonce", "x"],
            ["-X", "dev", "-Xutf8", "-W", "error", "-Wonce"],
        ),
        (["python", "-BuX", "dev", "-IsE", "x"], ["-BuX", "dev", "-IsE"]),
        (["python", "--check-hash-based-pycs", "never", "-c", "pass"], ["--check-hash-based-pycs", "never"]),
        (["python", "-OO", "-", "-u"], ["-OO"]),
        (["python"], []),
    ],
)
def test_flags_before_the_program(command: list[str], flags: list[str]) -> None:
    from headrace.run.environment import interpreter_flags

    assert interpreter_flags(command) == flags


def test_help(scripts: Any) -> None:
    result = scripts.run("--help")
    assert result.status == 0
    assert result.out.startswith(b"Usage: ")
    assert (
        subprocess.run(
            [sys.executable, "-m", "headrace", "--help"], capture_output=True, text=True, check=True
        ).stdout.count("\n  run ")
        == 1
    )
