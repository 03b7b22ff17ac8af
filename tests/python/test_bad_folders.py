"""A run folder that cannot be written: the loop goes on, recording goes to memory, one warning says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOP = """
    import ctypes, sys
    import headrace as hr

    @hr.operator("decode")
    def decode(item):
        return item

    if "drop" in sys.argv:
        # Root may write everywhere: without its capabilities it is a user like others.
        version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(version, nothing) == 0
    loader = hr.wrap(map(decode, range(50)), name="train", run=sys.argv[1])
    assert list(loader) == list(range(50))
    again = hr.wrap([1, 2], name="again", run=sys.argv[1])
    assert list(again) == [1, 2]
    report = loader.report()
    assert report.profile.sink.steps == 50
    assert {one.name: one.items for one in report.profile.operators}["decode"] == 50
    assert report.to_text()
"""


def warnings(result: Any) -> list[str]:
    return [line for line in result.err.splitlines() if line]


def test_a_folder_that_is_a_file(execute: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("taken")
    (warning,) = warnings(execute(LOOP, tmp_path / "run"))
    assert "recording goes on in memory" in warning
    assert str(tmp_path / "run") in warning
    assert (tmp_path / "run").read_text() == "taken"


def test_below_a_file(execute: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("taken")
    (warning,) = warnings(execute(LOOP, tmp_path / "file" / "run"))
    assert "recording goes on in memory" in warning


def test_a_name_that_is_too_long(execute: Callable[..., Any], tmp_path: Path) -> None:
    (warning,) = warnings(execute(LOOP, tmp_path / ("x" * 300)))
    assert "recording goes on in memory" in warning


def test_a_file_system_that_takes_no_folders(execute: Callable[..., Any]) -> None:
    (warning,) = warnings(execute(LOOP, "/proc/headrace-run"))
    assert "recording goes on in memory" in warning


def test_a_folder_that_may_not_be_written(execute: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o555)
    (warning,) = warnings(execute(LOOP, folder, "drop"))
    assert "recording goes on in memory" in warning
    assert list(folder.iterdir()) == []


def test_only_rank_0_warns(execute: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "run").write_text("taken")
    assert warnings(execute(LOOP, tmp_path / "run", RANK="1", WORLD_SIZE="2")) == []


def test_a_disk_that_is_full(execute: Callable[..., Any], tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: no file can hold a segment."""
    result = execute(
        """
        import resource, signal
        import headrace as hr

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for number in range(3):
            loader = hr.wrap(range(50), name="train", run=f"run {number}")
            assert list(loader) == list(range(50))
            assert loader.report().profile.sink.steps == 50
            del loader
        """
    )
    assert 1 <= len(warnings(result)) <= 3
    assert all("in memory" in line for line in warnings(result))


def test_a_disk_that_fills_up_while_it_runs(execute: Callable[..., Any], tmp_path: Path) -> None:
    result = execute(
        """
        import resource, signal
        import headrace as hr

        loader = hr.wrap(range(50), name="train", run="run")
        loop = iter(loader)
        next(loop)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        assert len(list(loop)) == 49
        assert loader.report().profile.sink.steps == 50
        """
    )
    assert len(warnings(result)) <= 1
    assert "Traceback" not in result.err


def test_a_folder_that_vanishes_while_it_runs(start: Callable[..., Any]) -> None:
    program = start(
        """
        import shutil
        import headrace as hr

        loader = hr.wrap(range(50), name="train", run="run")
        for item in loader:
            if item == 20:
                shutil.rmtree("run")
        assert loader.report().profile.sink.steps == 50
        """
    )
    result = program.result()
    assert result.status == 0
    assert len(warnings(result)) <= 1
    assert "Traceback" not in result.err
    # The live segment is all there is of this run and stays; here it has served.
    for left in Path("/dev/shm").glob(f"headrace-*/{program.process.pid}-*"):
        left.unlink()


def test_no_file_descriptors_left(execute: Callable[..., Any]) -> None:
    result = execute(
        """
        import os, resource
        import headrace as hr

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        loader = hr.wrap(range(50), name="train", run="run")
        assert list(loader) == list(range(50))
        for fd in taken:
            os.close(fd)
        assert loader.report().profile.sink.steps == 50
        """
    )
    assert "Traceback" not in result.err
    assert len(warnings(result)) <= 1
