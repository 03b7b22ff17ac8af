"""Trials of ``headrace tune`` write nowhere but into their copy, and end with all that they started."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.common.owned_folder import OwnedFolder, remove_tree
from headrace.run.scratch import WorkingFolder
from headrace.run.supervisor import Supervised
from headrace.run.work_copy import WorkCopy
from headrace.run.write_guard import can_guard_writes

TUNE = "from headrace.show.cli import main; main()"
#: The same where the kernel cannot refuse writes.
UNGUARDED = f"from headrace.run import scratch; scratch.can_guard_writes = lambda: False; {TUNE}"
guarded = pytest.mark.skipif(not can_guard_writes(), reason="this kernel has no Landlock")

#: A loop that does not wait, so that there is one trial, and after it what a script does with its results.
LOOP = """
    import os, pathlib, sys, time, headrace as hr
    try:
        for b in hr.source(range(10**5)).batch(2):
            time.sleep(0.01)
    finally:
        pathlib.Path(sys.argv[1]).write_text("ended")
"""


class Project:
    """A working folder with results in it, and other folders around."""

    def __init__(self, root: Path, scripts: Any) -> None:
        self.root = root
        self.folder = root / "project"
        self.folder.mkdir()
        #: Written by each trial: that its code has run.
        self.ended = root / "temporary" / "ended"
        self.ended.parent.mkdir()
        self._scripts = scripts
        scripts.folder = self.folder

    def file(self, name: str, text: str = "90 epochs") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, source: str, *options: str, arguments: tuple[str, ...] = (), program: str = TUNE) -> Any:
        script = self._scripts.write(textwrap.dedent(LOOP) + textwrap.indent(textwrap.dedent(source), "    "))
        given = ["--steps", "12", "--budget", "20s", *options, script, str(self.ended), *arguments]
        command = [sys.executable, "-c", program, "tune", *given]
        return self._scripts.start(command, environment={"TMPDIR": str(self.ended.parent)})

    def tune(self, source: str, *options: str, **given: Any) -> Any:
        return self._scripts.finish(self.start(source, *options, **given))

    def files(self) -> dict[str, str]:
        """Every file below the root with its text."""
        found = {}
        for place, folders, names in os.walk(self.root):
            found |= {f"{place}/{name}": "" for name in folders}
            for name in names:
                path = Path(place) / name
                found[str(path)] = path.read_text(errors="replace") if path.is_file() else ""
        found.pop(str(self.ended), None)
        return {name: text for name, text in found.items() if not name.endswith(".pyc")}


@pytest.fixture
def project(tmp_path: Path, scripts: Any) -> Project:
    return Project(tmp_path, scripts)


@pytest.fixture
def unharmed(project: Project) -> Callable[..., Any]:
    """``unharmed(source)``: trials that end with ``source`` run, and change no file."""
    if not can_guard_writes():
        pytest.skip("this kernel has no Landlock")

    def check(source: str, *options: str, arguments: tuple[str, ...] = ()) -> Any:
        project.file("project/script.py", "")
        before = project.files()
        outcome = project.tune(source, *options, arguments=arguments)
        assert outcome.status == 0, outcome.err
        assert project.ended.read_text() == "ended"
        after = project.files()
        after[str(project.folder / "script.py")] = ""
        assert after == before
        assert len(outcome.err.splitlines()) == 1
        return outcome

    return check


WRITES = """
    for name in ("last.pt", "new.pt"):
        pathlib.Path("checkpoints", name).write_text("12 steps")
    pathlib.Path("checkpoints/part").write_text("12 steps")
    os.replace("checkpoints/part", "checkpoints/best.pt")
    with open("checkpoints/log.txt", "a") as log:
        log.write("12 steps")
"""


def fill(project: Project, folder: str) -> None:
    for name in ("last.pt", "best.pt", "log.txt"):
        project.file(f"{folder}/{name}")


def test_a_folder(project: Project, unharmed: Callable[..., Any]) -> None:
    fill(project, "project/checkpoints")
    unharmed(WRITES)


READ_ONLY = """
    import contextlib
    for name in {names!r}:
        assert pathlib.Path(name).read_text() == "90 epochs"
    for name in {names!r} + {new!r}:
        with contextlib.suppress(PermissionError):
            pathlib.Path(name).write_text("12 steps")
            raise SystemExit("written: " + name)
"""


def test_links_that_lead_outside_are_read_only(project: Project, unharmed: Callable[..., Any]) -> None:
    project.file("store/run/last.pt")
    project.file("elsewhere/best.pt")
    (project.root / "shared").mkdir()
    (project.root / "shared" / "now").symlink_to("../store/run")
    (project.root / "store" / "away").symlink_to(project.root / "elsewhere")
    (project.folder / "deep").mkdir()
    (project.folder / "deep" / "last.pt").symlink_to(project.root / "store" / "run" / "last.pt")
    (project.folder / "outputs").symlink_to("../shared")
    (project.folder / "checkpoints").symlink_to("outputs/now")
    (project.folder / "store").symlink_to("../store")
    (project.folder / "new.pt").symlink_to(project.root / "store" / "not-yet.pt")
    names = ["checkpoints/last.pt", "outputs/now/last.pt", "deep/last.pt", "store/away/best.pt"]
    outcome = unharmed(READ_ONLY.format(names=names, new=["new.pt", "checkpoints/new.pt"]))
    assert "Read-only, because the link leads out of the folder: " in outcome.err


def test_hard_links(project: Project, unharmed: Callable[..., Any]) -> None:
    stored = project.file("store/last.pt")
    (project.folder / "last.pt").hardlink_to(stored)
    unharmed('open("last.pt", "r+").write("12 steps")')


def test_links_that_lead_inside(project: Project, unharmed: Callable[..., Any]) -> None:
    project.file("project/runs/3/last.pt")
    (project.folder / "latest").symlink_to(project.folder / "runs" / "3")
    unharmed(
        """
        assert pathlib.Path("latest/last.pt").read_text() == "90 epochs"
        pathlib.Path("latest/last.pt").write_text("12 steps")
        assert pathlib.Path("runs/3/last.pt").read_text() == "12 steps"
        """
    )


def test_what_is_removed_and_renamed(project: Project, unharmed: Callable[..., Any]) -> None:
    fill(project, "project/checkpoints")
    fill(project, "project/old")
    unharmed(
        """
        import shutil
        shutil.rmtree("old")
        shutil.move("checkpoints", "old")
        os.mkdir("checkpoints")
        """
    )


def test_special_files(project: Project, unharmed: Callable[..., Any]) -> None:
    os.mkfifo(project.folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(project.folder)  # names of sockets are short
        server.bind("socket")
        os.chdir(here)
        (project.folder / "null").symlink_to("/dev/null")
        (project.folder / "to-fifo").symlink_to("fifo")
        unharmed('open("null", "w").write("12 steps")')


def test_absolute_paths(project: Project, unharmed: Callable[..., Any]) -> None:
    fill(project, "project/checkpoints")
    fill(project, "store")
    unharmed(
        f"""
        import errno, tempfile
        for folder in ({str(project.folder / "checkpoints")!r}, sys.argv[2], sys.argv[3].partition("=")[2]):
            for act in (
                lambda: pathlib.Path(folder, "last.pt").write_text("12 steps"),
                lambda: os.truncate(folder + "/last.pt", 3),
                lambda: os.remove(folder + "/best.pt"),
                lambda: os.mkdir(folder + "/new"),
                lambda: os.rename(sys.argv[1], folder + "/log.txt"),
            ):
                try:
                    act()
                except OSError as error:
                    assert error.errno in (errno.EACCES, errno.EXDEV), error
                else:
                    raise SystemExit("not refused")
        tempfile.TemporaryFile().close()
        pathlib.Path(sys.argv[1]).write_text("ended")
        """,
        arguments=(str(project.root / "store"), f"--out={project.root / 'store'}"),
    )


def test_where_writes_cannot_be_refused_nothing_runs(project: Project) -> None:
    outcome = project.tune("", program=UNGUARDED)
    assert outcome.status == 1
    assert "Landlock" in outcome.err
    assert "--in-place" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not project.ended.exists()


@guarded
def test_a_large_folder_is_not_run(project: Project) -> None:
    with (project.folder / "data.bin").open("wb") as file:
        file.truncate(201 << 20)
    outcome = project.tune(WRITES)
    assert outcome.status == 1
    assert "--in-place" in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not project.ended.exists()


@pytest.mark.parametrize("program", [TUNE, UNGUARDED])
def test_in_place_only_if_asked_for(project: Project, program: str) -> None:
    fill(project, "project/checkpoints")
    outcome = project.tune(WRITES, "--in-place", program=program)
    assert outcome.status == 0, outcome.err
    assert (project.folder / "checkpoints" / "last.pt").read_text() == "12 steps"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
@guarded
def test_unreadable_files(project: Project) -> None:
    project.file("project/secret").chmod(0)
    outcome = project.tune("")
    assert outcome.status == 0, outcome.err
    assert "cannot be read: " in outcome.err


def test_files_that_vanish_while_they_are_copied(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b/c", "d"):
        project.file(f"project/{name}")
    (project.folder / "link").symlink_to("a")
    target = project.root / "copy"
    target.mkdir()
    real_scandir = os.scandir

    def listed_and_gone(path: str) -> list[Any]:
        with real_scandir(path) as entries:
            found = list(entries)
        for entry in found:
            if entry.name in "ac" or entry.is_symlink():
                Path(entry.path).unlink()
        return found

    monkeypatch.setattr(os, "scandir", listed_and_gone)
    copy = WorkCopy(str(project.folder), str(target), ("none",), 1000)
    copy.make()
    monkeypatch.undo()
    assert copy.unreadable == []
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == ["b", "d"]


def test_a_full_disk_is_one_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from headrace import Error
    from headrace.run import scratch

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/a/b")

    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(scratch.WorkCopy, "make", full)
    with pytest.raises(Error, match=r"project/ cannot be copied into .*: No space left on device$"):
        WorkingFolder(False, [])
    assert [path.name for path in project.root.iterdir() if "headrace" in path.name] == []


# --- the end of trials ---


def processes_with(text: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (path / "cmdline").read_bytes() and int(path.name) != os.getpid():
                found.append(int(path.name))
    return found


def wait_until(holds: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


#: A script that no signal but SIGKILL ends, with a worker in its own session.
STUBBORN = """
    import os, signal, subprocess, sys, time, headrace as hr
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import signal, time\\nsignal.signal(15, signal.SIG_IGN)\\n"
                      "time.sleep(900)", sys.argv[1]], start_new_session=True)
    for b in hr.source(range(10**5)).map(lambda i: time.sleep(.05), name="slow").batch(2):
        open(sys.argv[1], "w").close()
"""


@guarded
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(project: Project, scripts: Any, number: int) -> None:
    script = scripts.write(STUBBORN)
    program = [sys.executable, "-c", TUNE, "tune", "--steps", "9000", script]
    command = scripts.start([*program, str(project.ended)], environment={"TMPDIR": str(project.ended.parent)})
    wait_until(project.ended.exists)
    assert len(processes_with(str(project.ended))) >= 3
    command.send_signal(number)
    outcome = scripts.finish(command)
    assert outcome.status == -number
    wait_until(lambda: not processes_with(str(project.ended)))
    wait_until(lambda: list(project.ended.parent.iterdir()) == [project.ended])
    assert sorted(path.name for path in project.root.iterdir()) == ["project", "temporary"]


@guarded
def test_daemons_of_a_trial_end_with_it(project: Project) -> None:
    daemon = "import time; time.sleep(900)"
    outcome = project.tune(
        f"""
        import subprocess
        subprocess.Popen([sys.executable, "-c", {daemon!r}, sys.argv[1]], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "-c", {daemon!r}, sys.argv[1]])
            os._exit(0)
        """,
    )
    assert outcome.status == 0, outcome.err
    assert processes_with(str(project.ended)) == []


def test_a_trial_that_hangs_is_cut_off(project: Project, scripts: Any) -> None:
    pytest.importorskip("torch")
    script = scripts.write(
        """
        import time, torch
        from torch.utils.data import DataLoader, Dataset, get_worker_info

        class Hangs(Dataset):
            def __len__(self):
                return 4000
            def __getitem__(self, index):
                if get_worker_info() is not None:
                    time.sleep(10**4)
                time.sleep(.005)
                return index

        for batch in DataLoader(Hangs(), batch_size=4):
            time.sleep(.001)
        """
    )
    began = time.monotonic()
    command = [sys.executable, "-m", "headrace", "tune", "--steps", "20", "--budget", "90s", script]
    outcome = scripts.finish(scripts.start(command))
    assert time.monotonic() - began < 90
    assert outcome.status == 0, outcome.err
    said = outcome.out.decode()
    assert "the script was stopped after" in said
    assert "nothing to change" in said


def test_leftovers_are_removed_by_the_next_run(tmp_path: Path) -> None:
    kept = tmp_path / "headrace-trials-mine"  # no name of ours
    kept.mkdir()
    alive = OwnedFolder("headrace-trials-", tmp_path)
    code = f"""
        import os, pathlib
        from headrace.common.owned_folder import OwnedFolder, remove_tree
        folder = OwnedFolder("headrace-trials-", {str(tmp_path)!r})
        inner = pathlib.Path(folder.path, "work")
        inner.mkdir()
        (inner / "file").touch()
        inner.chmod(0)
        os._exit(0)
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert len(list(tmp_path.iterdir())) == 3
    with OwnedFolder("headrace-trials-", tmp_path) as mine:
        assert {path.name for path in tmp_path.iterdir()} == {
            "headrace-trials-mine", Path(alive.path).name, Path(mine.path).name,
        }  # fmt: skip
    alive.remove()
    assert list(tmp_path.iterdir()) == [kept]


def ended(script: Supervised) -> int | None:
    wait_until(lambda: script.poll() is not None)
    return script.poll()


def test_removal_touches_nothing_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    outside.chmod(0o555)
    tmp_path.chmod(0o755)
    with OwnedFolder("headrace-trials-", tmp_path) as folder:
        (Path(folder.path) / "link").symlink_to(outside)
        (Path(folder.path) / "closed" / "inner").mkdir(parents=True)
        (Path(folder.path) / "closed" / "inner" / "file").touch()
        (Path(folder.path) / "closed" / "inner").chmod(0)
        (Path(folder.path) / "closed").chmod(0)
    remove_tree(folder.path)  # is gone already
    assert list(tmp_path.iterdir()) == [outside]
    assert [path.stat().st_mode & 0o777 for path in (tmp_path, outside)] == [0o755, 0o555]
    assert (outside / "kept").exists()
    outside.chmod(0o755)


def test_a_supervised_script_has_its_own_status(tmp_path: Path) -> None:
    def status(code: str) -> int:
        command = [sys.executable, "-c", code]
        return ended(Supervised(command, os.environ, str(tmp_path), f"{tmp_path}/said"))

    assert status("import os; os.abort()") == -signal.SIGABRT
    assert status("raise SystemExit(7)") == 7
    assert ended(Supervised(["/no/program"], {}, str(tmp_path), f"{tmp_path}/said")) == 127
    assert "No such file" in (tmp_path / "said").read_text()


def test_a_guard_that_fails_later_is_said(tmp_path: Path) -> None:
    def refuse() -> None:
        raise OSError(1, "Operation not permitted", "/data")

    command = [sys.executable, "-c", "print('runs')"]
    assert ended(Supervised(command, os.environ, str(tmp_path), f"{tmp_path}/said", refuse)) == 127
    assert "headrace: " in (tmp_path / "said").read_text()
    assert "/data" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("variables", [{"RANK": "1"}, {"SLURM_PROCID": "3", "SLURM_NTASKS": "4"}])
def test_whatever_the_rank_is(scripts: Any, variables: dict[str, str]) -> None:
    script = scripts.write(
        """
        import time, headrace as hr
        for b in hr.source(range(10**5)).map(lambda i: time.sleep(.004), name="slow").batch(2):
            pass
        """
    )
    command = [sys.executable, "-m", "headrace", "tune", "--steps", "20", "--budget", "60s", script]
    outcome = scripts.finish(scripts.start(command, environment=variables))
    assert outcome.status == 0, outcome.err
    assert 'pipe.set_workers("slow"' in outcome.out.decode()
    assert ("Only this rank is tuned" in outcome.err) == ("SLURM_NTASKS" in variables)


def test_too_little_time_for_a_search(scripts: Any) -> None:
    script = scripts.write(
        """
        import time, headrace as hr
        for b in hr.source(range(10**5)).map(lambda i: time.sleep(.25), name="slow").batch(1):
            pass
        """
    )
    # A trial of 12 steps takes 3 s at least, a sixth of the time has room for 7; its start may take 3 s.
    command = [sys.executable, "-m", "headrace", "tune", "--steps", "12", "--budget", "12s", script]
    outcome = scripts.finish(scripts.start(command))
    assert outcome.status == 1
    assert outcome.out == b""
    assert "a search needs about 6 of them: --budget " in outcome.err.splitlines()[-1]
