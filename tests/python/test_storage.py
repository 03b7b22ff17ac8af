"""Where recordings lie, and what another user, a full disk, a short /dev/shm or a limit can do to them.

Tests that need another user or a small /dev/shm run as root in a mount namespace; elsewhere they are skipped.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace import _core

SHARED = Path(f"/dev/shm/headrace-{os.geteuid()}")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def namespace_works() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "x", "/dev/shm"], capture_output=True
    )
    return tried.returncode == 0


own_shared_memory = pytest.mark.skipif(not namespace_works(), reason="needs root and mount namespaces")


def in_shared_memory_of(size: str, source: str, folder: Path, **environment: str) -> Any:
    """Runs a program where /dev/shm has ``size``; before it, as root, ``prepare`` of the environment."""
    program = folder / "program.py"
    program.write_text(textwrap.dedent(source))
    command = (
        f"mount -t tmpfs -o mode=1777,size={size} shm /dev/shm && "
        f"{{ {environment.pop('prepare', 'true')}; }} && exec {sys.executable} {program}"
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


class TestAnotherUser:
    """/dev/shm is everybody's: what lies in a folder with our name there may be theirs."""

    @own_shared_memory
    def test_cannot_have_files_overwritten(self, tmp_path: Path) -> None:
        victim = tmp_path / "bashrc"
        victim.write_text("mine")
        tmp_path.chmod(0o755)
        attack = (
            "mkdir /dev/shm/headrace-0; cd /dev/shm/headrace-0; "
            "echo 'echo PWNED' > 99999999-1-0.hrseg; "
            f"echo {victim} > 99999999-1-0.hrseg.home; "
            f"chown -R 65534:65534 /dev/shm/headrace-0; cd {tmp_path}"
        )
        source = """
            import os
            import headrace as hr

            assert list(hr.wrap(range(5), run="run")) == list(range(5))
            assert sorted(os.listdir("/dev/shm/headrace-0")) == [
                "99999999-1-0.hrseg", "99999999-1-0.hrseg.home",
            ]
        """
        result = in_shared_memory_of("512m", source, tmp_path, prepare=attack)
        assert result.returncode == 0, result.stderr
        assert victim.read_text() == "mine"
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 5

    @own_shared_memory
    def test_cannot_have_files_read_through_a_link(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("a secret")
        (tmp_path / "public").mkdir()
        attack = (
            "mkdir -m 700 /dev/shm/headrace-0; cd /dev/shm/headrace-0; "
            f"ln -s {secret} 99999999-1-0.hrseg; "
            f"echo {tmp_path}/public/rank0.hrseg > 99999999-1-0.hrseg.home; cd {tmp_path}"
        )
        source = "import headrace as hr; list(hr.wrap(range(5), run='run'))"
        result = in_shared_memory_of("512m", source, tmp_path, prepare=attack)
        assert result.returncode == 0, result.stderr
        assert list((tmp_path / "public").iterdir()) == []
        assert secret.read_text() == "a secret"


def test_reading_a_crafted_folder_moves_nothing(start: Callable[..., Any], tmp_path: Path) -> None:
    """A pointer to another run's live segment, in a folder that somebody sent."""
    program = start(
        """
        import os, signal
        import headrace as hr

        for item in hr.wrap(range(100), name="mine", run="run"):
            if item == 50:
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    program.result()
    live = (tmp_path / "run" / "rank0.live").read_text().splitlines()[0]
    crafted = tmp_path / "crafted"
    crafted.mkdir()
    for name, text in {"rank0.live": live + "\n", "rank1.live": f"{live}\n1\n1 1 1\n"}.items():
        (crafted / name).write_text(text)
    before = sorted(path.name for path in SHARED.iterdir())
    with pytest.raises(hr.Error, match=r"no recorded run|left nothing"):
        hr.Report.load(crafted)
    assert sorted(path.name for path in SHARED.iterdir()) == before
    assert hr.Report.load(tmp_path / "run").profile.sink.steps == 51
    _core.collect_orphans("")


def test_leftovers_of_runs_whose_folder_is_gone(start: Callable[..., Any], tmp_path: Path) -> None:
    source = """
        import os, signal, sys
        import headrace as hr

        for item in hr.wrap(range(100), run=sys.argv[1]):
            if item == 3:
                os.kill(os.getpid(), signal.SIGKILL)
    """
    programs = [start(source, f"run {number}") for number in range(20)]
    pids = [program.process.pid for program in programs]
    for program in programs:
        program.result()
    for number in range(20):
        shutil.rmtree(tmp_path / f"run {number}")
    start("import headrace as hr; list(hr.wrap([1], run='next'))").result()
    left = {path.name.partition("-")[0] for path in SHARED.iterdir()}
    assert not left & {str(pid) for pid in pids}


class TestShortSharedMemory:
    """64 MB are Docker's default, and DataLoader workers hand their batches over in it."""

    SOURCE = """
        import os, sys
        import headrace as hr

        free = os.statvfs("/dev/shm")
        before = free.f_bavail * free.f_frsize
        loops = [hr.wrap(range(10), name=f"loop {n}", run=f"run {n}") for n in range(7)]
        for loop in loops:
            assert list(loop) == list(range(10))
        free = os.statvfs("/dev/shm")
        assert before - free.f_bavail * free.f_frsize < 1 << 20
    """

    @own_shared_memory
    @pytest.mark.parametrize("size", ["1m", "16m", "64m"])
    def test_it_is_left_to_training(self, tmp_path: Path, size: str) -> None:
        result = in_shared_memory_of(size, self.SOURCE, tmp_path)
        assert result.returncode == 0, result.stderr
        assert result.stderr.count("/dev/shm is short of room") == 1
        for number in range(7):
            assert hr.Report.load(tmp_path / f"run {number}").profile.sink.steps == 10
            assert [path.name for path in (tmp_path / f"run {number}").glob("*.hrseg*")] == ["rank0.hrseg"]

    @own_shared_memory
    def test_a_killed_program_is_read_from_its_folder(self, tmp_path: Path) -> None:
        source = """
            import os, signal
            import headrace as hr

            for item in hr.wrap(range(100), run="run"):
                if item == 50:
                    os.kill(os.getpid(), signal.SIGKILL)
        """
        assert in_shared_memory_of("16m", source, tmp_path).returncode != 0
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 51
        _core.collect_orphans(tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["rank0.hrseg"]
        assert hr.Report.load(tmp_path / "run").profile.sink.steps == 51

    @own_shared_memory
    def test_where_neither_is_to_be_had_it_is_said(self, tmp_path: Path) -> None:
        source = """
            import os, resource, signal, sys
            import headrace as hr

            # No file may grow to the size of a segment, copies and pointers may be written.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
            loader = hr.wrap(range(100), run="run")
            for item in loader:
                if item == 50:
                    assert any("in memory only" in note for note in loader.report().profile.notes)
                    os.kill(os.getpid(), signal.SIGKILL)
        """
        result = in_shared_memory_of("16m", source, tmp_path)
        assert "recording goes on in memory" in result.stderr
        with pytest.raises(hr.Error, match="rank 0 was recorded in memory only"):
            hr.Report.load(tmp_path / "run")


class TestFullDisk:
    @own_shared_memory
    def test_it_is_said_at_once_and_at_the_end(self, tmp_path: Path) -> None:
        (tmp_path / "full").mkdir()
        fill = (
            f"mount -t tmpfs -o size=64k full {tmp_path}/full && "
            f"head -c 1m /dev/zero > {tmp_path}/full/x 2>/dev/null; true"
        )
        source = """
            import headrace as hr

            loader = hr.wrap(range(50), name="train", run="full/run")
            assert list(loader) == list(range(50))
            assert loader.report().profile.sink.steps == 50
            report = hr.Report.load("full/run")
            assert (report.loader, report.profile.sink.steps) == ("train", 50)
        """
        result = in_shared_memory_of("512m", source, tmp_path, prepare=fill)
        assert result.returncode == 0, result.stderr
        first, last = result.stderr.splitlines()
        assert "No space left on device" in first
        assert "could not be saved" in last
        assert "No space left on device" in last

    def test_a_limit_on_the_size_of_files(self, tmp_path: Path) -> None:
        """`ulimit -f` stands in for the disk: neither pointers nor copies can be written."""
        script = tmp_path / "script.py"
        script.write_text(
            "import headrace as hr\nfor _ in hr.wrap(range(20), name='train', run='run'): pass\n"
        )
        result = subprocess.run(
            ["sh", "-c", f"ulimit -f 0; exec {sys.executable} {script}"],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert "recording goes on in memory" in result.stderr
        assert "could not be saved" in result.stderr
        assert not list((tmp_path / "run").iterdir())


class TestWhereNothingCanBeRecorded:
    def test_no_memory(self, execute: Callable[..., Any]) -> None:
        result = execute(
            """
            import resource
            import headrace as hr

            pages = int(open("/proc/self/statm").read().split()[0])
            limit = pages * resource.getpagesize() + 4_000_000
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            loader = hr.wrap([1, 2, 3], run="run")
            assert list(loader) == [1, 2, 3]
            assert len(loader) == 3
            try:
                loader.report()
            except hr.Error as error:
                assert "nothing was recorded" in str(error)
            else:
                raise AssertionError
            """
        )
        (line,) = result.err.splitlines()
        assert "nothing is recorded: MemoryError" in line

    def test_no_thread(self, execute: Callable[..., Any]) -> None:
        result = execute(
            """
            import os, resource, sys

            GIB = 1 << 30
            if len(sys.argv) == 1:  # a process has the size of its threads' stacks from its beginning
                resource.setrlimit(resource.RLIMIT_STACK, (GIB, GIB))
                os.execv(sys.executable, [sys.executable, __file__, "again"])

            import headrace as hr

            # A thread's stack no longer fits, all else does.
            pages = int(open("/proc/self/statm").read().split()[0])
            limit = pages * resource.getpagesize() + GIB // 2
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            loader = hr.wrap([1, 2, 3], run="run")
            assert list(loader) == [1, 2, 3]
            assert loader.report().profile.sink.steps == 3
            """
        )
        assert "no thread could be started" in result.err
        assert len(result.err.splitlines()) == 1

    def test_the_33rd_loader(self, execute: Callable[..., Any]) -> None:
        result = execute(
            """
            import headrace as hr

            loaders = [hr.wrap([1, 2], name=f"loader {n}", run="run") for n in range(33)]
            for loader in loaders:
                assert list(loader) == [1, 2]
            assert loaders[31].report().profile.sink.steps == 2
            """
        )
        (line,) = result.err.splitlines()
        assert "'loader 32' is not recorded" in line


class TestNames:
    def test_folders_that_are_no_text(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        execute(
            r"""
            import os
            import headrace as hr

            for run in (b"caf\xe9", os.fsdecode(b"na\xefve"), "tag \N{SNOWMAN}"):
                loader = hr.wrap([1, 2, 3], name="train", run=run)
                assert list(loader) == [1, 2, 3]
                assert loader.report().profile.sink.steps == 3
                del loader
                assert hr.Report.load(os.fsdecode(run)).profile.sink.steps == 3
                hr.timeline.merge(os.fsdecode(run))
            with hr.session(run=b"\xff"):
                list(hr.wrap([1]))
            """
        )
        assert Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9/timeline.json.gz")).is_file()

    def test_errors_name_them(self, tmp_path: Path) -> None:
        broken = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xe9.hrseg"))
        broken.write_bytes(b"x" * 4000)
        with pytest.raises(hr.SegmentError, match="magic"):
            hr.Report.load(broken)

    @pytest.mark.parametrize("run", ["a\0b", 7, ["x"]])
    def test_what_is_no_path(self, run: Any) -> None:
        with pytest.raises(hr.UsageError, match="run is the path of a folder"):
            hr.wrap([1], run=run)

    def test_annotations_that_are_no_text(self, execute: Callable[..., Any]) -> None:
        execute(
            r"""
            import headrace as hr

            for _ in hr.wrap([1], run="run"):
                with hr.annotate("\ud800"), hr.annotate("a\0b"):
                    pass
            """
        )

    def test_a_working_directory_that_is_gone(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        result = execute(
            """
            import os
            import headrace as hr

            os.mkdir("gone")
            os.chdir("gone")
            os.rmdir("../gone")
            for run in (None, "run"):
                loader = hr.wrap([1, 2], run=run)
                assert list(loader) == [1, 2]
                assert loader.report().profile.sink.steps == 2
            """
        )
        assert "Traceback" not in result.err

    @pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
    def test_terminals_that_cannot_show_everything(
        self, execute: Callable[..., Any], tmp_path: Path, encoding: str
    ) -> None:
        execute("import headrace as hr\nlist(hr.wrap([1] * 20, name='tr\\u2192n', run='run'))")
        shown = subprocess.run(
            [sys.executable, "-m", "headrace", "report", str(tmp_path / "run")],
            capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=False,
        )  # fmt: skip
        assert shown.returncode == 0, shown.stderr
        assert b"Traceback" not in shown.stderr
        source = "import headrace as hr; print(hr.Report.load('run'))"
        printed = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert printed.returncode == 0, printed.stderr
        assert printed.stdout.startswith(b"tr?n")


class TestHeadraceRun:
    """What the command says where its script could not leave a recording."""

    SCRIPT = """
        import headrace as hr
        loader = hr.wrap(range(60), name="train")
        for item in loader:
            pass
    """

    def command(self, folder: Path, *arguments: str) -> list[str]:
        (folder / "script.py").write_text(textwrap.dedent(self.SCRIPT))
        return [sys.executable, "-m", "headrace", "run", *arguments, str(folder / "script.py")]

    @own_shared_memory
    def test_on_a_full_disk_it_reports_all_the_same(self, tmp_path: Path) -> None:
        (tmp_path / "full").mkdir()
        command = " ".join(self.command(tmp_path, "--out", str(tmp_path / "full" / "run")))
        line = (
            "mount -t tmpfs -o size=512m shm /dev/shm && "
            f"mount -t tmpfs -o size=64k full {tmp_path}/full && mkdir -m 700 {tmp_path}/full/run && "
            f"head -c 1m /dev/zero > {tmp_path}/full/x 2>/dev/null; {command}"
        )
        result = subprocess.run(
            ["unshare", "-m", "sh", "-c", line], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        assert "No space left on device" in result.stderr
        assert "train" in result.stderr
        assert "60 steps" in result.stderr
        assert "no loader was iterated" not in result.stderr

    def test_a_folder_that_is_no_text(self, tmp_path: Path) -> None:
        folder = os.fsencode(tmp_path) + b"/caf\xe9"
        command = self.command(tmp_path)
        command[4:4] = ["--out", os.fsdecode(folder)]
        result = subprocess.run(command, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr
        assert b"60 steps" in result.stderr
        assert b"rank0.hrseg" in os.listdir(folder)  # noqa: PTH208 - a path of bytes


class TestOutput:
    """What exists and is no regular file is written through, never replaced."""

    @pytest.fixture
    def run(self, execute: Callable[..., Any], tmp_path: Path) -> Path:
        execute("import headrace as hr\nlist(hr.wrap([1] * 20, run='run'))")
        return tmp_path / "run"

    def timeline(self, run: Path, out: str) -> Any:
        return subprocess.run(
            [sys.executable, "-m", "headrace", "timeline", str(run), "-o", out],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def test_devices(self, run: Path) -> None:
        result = self.timeline(run, "/dev/full")
        assert (result.returncode, result.stderr) == (1, "headrace: /dev/full: No space left on device\n")
        assert self.timeline(run, "/dev/null").returncode == 0
        assert not Path("/dev/full").is_file()
        assert not Path("/dev/null").is_file()

    def test_links_and_pipes(self, run: Path, tmp_path: Path) -> None:
        (tmp_path / "link.json").symlink_to("target.json")
        assert self.timeline(run, str(tmp_path / "link.json")).returncode == 0
        assert (tmp_path / "link.json").is_symlink()
        assert (tmp_path / "target.json").read_text().startswith("{")
        line = f"{sys.executable} -m headrace timeline {run} -o >(cat > {tmp_path}/through.gz)"
        assert subprocess.run(["bash", "-c", line], check=False).returncode == 0
        end = time.monotonic() + 30
        while not (tmp_path / "through.gz").exists() or not (tmp_path / "through.gz").stat().st_size:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_unnamed_runs(execute: Callable[..., Any], start: Callable[..., Any], tmp_path: Path) -> None:
    runs = tmp_path / "headrace-runs"
    reported = "import headrace as hr\nl = hr.wrap([1, 2])\nlist(l)\nprint(l.report().profile.sink.steps)"
    assert execute(reported).err == ""
    assert not runs.exists(), "a report printed from memory leaves nothing"
    unreported = "import headrace as hr\nlist(hr.wrap([1, 2]))"
    for _ in range(3):
        execute(unreported)
    assert execute(reported).err == ""
    kept = [path for path in runs.iterdir() if path.is_dir()]
    assert len(kept) == 3
    assert all((path / "rank0.hrseg").stat().st_size < 150_000 for path in kept)
    execute(reported, HEADRACE_DIR="asked")
    assert hr.Report.load(tmp_path / "asked").profile.sink.steps == 2
    # What a killed program recorded is there although nobody asked for a folder.
    killed = start(unreported + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)").result()
    assert killed.status == -signal.SIGKILL
    (new,) = {path for path in runs.iterdir() if path.is_dir()} - set(kept)
    assert hr.Report.load(new).profile.sink.steps == 2
    _core.collect_orphans("")
