"""Runs: where they lie, what closes them, which one is recorded into."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".budget-" not in path.name)


def steps(folder: Path, loader: str | None = None) -> int:
    return hr.Report.load(folder, loader=loader).profile.sink.steps


def test_records_what_happens_inside(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "a", rank=3) as session:
        assert session.run == str(tmp_path / "a")
        assert "a" in repr(session)
        list(hr.wrap([1, 2], name="inside"))
    report = hr.Report.load(tmp_path / "a")
    assert (report.loader, report.rank, report.ranks) == ("inside", 3, [3])
    assert files(tmp_path / "a") == ["rank3.hrseg"]


def test_the_folder_is_the_users_alone(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "deep" / "er"):
        pass
    assert stat.S_IMODE((tmp_path / "deep" / "er").stat().st_mode) == 0o700
    for path in (tmp_path / "deep" / "er").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_accepts_str_and_path(tmp_path: Path) -> None:
    with hr.session(run=str(tmp_path / "text")):
        list(hr.wrap([1]))
    with hr.session(run="relative"):
        list(hr.wrap([1, 2]))
    assert steps(tmp_path / "text") == 1
    assert steps(tmp_path / "relative") == 2


def test_nested_sessions(tmp_path: Path) -> None:
    with hr.session(run=tmp_path / "outer"):
        list(hr.wrap([1], name="before"))
        with hr.session(run=tmp_path / "inner"):
            list(hr.wrap([1, 2], name="within"))
        list(hr.wrap([1, 2, 3], name="after"))
    assert sorted(hr.Report.load(tmp_path / "outer").loaders) == ["after", "before"]
    assert hr.Report.load(tmp_path / "inner").loaders == ["within"]


def test_one_session_cannot_be_entered_twice(tmp_path: Path) -> None:
    session = hr.session(run=tmp_path / "a")
    with session, pytest.raises(hr.UsageError, match="open already"), session:
        pass


def test_an_exception_closes_it(tmp_path: Path) -> None:
    def fails() -> None:
        with hr.session(run=tmp_path / "a"):
            list(hr.wrap([1, 2]))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert hr.Report.load(tmp_path / "a").profile.finished


def test_a_second_run_in_the_same_folder_lies_beside_the_first(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        with hr.session(run=tmp_path / "a"):
            list(hr.wrap(range(count), name=f"loader {count}"))
    assert files(tmp_path / "a") == ["rank0.2.hrseg", "rank0.3.hrseg", "rank0.hrseg"]
    assert sorted(hr.Report.load(tmp_path / "a").loaders) == ["loader 1", "loader 2", "loader 3"]
    assert steps(tmp_path / "a", "loader 2") == 2


def test_ranks_lie_beside_each_other(tmp_path: Path) -> None:
    for rank in (2, 0, 11):
        list(hr.wrap(range(rank + 1), run=tmp_path / "job", rank=rank))
    report = hr.Report.load(tmp_path / "job")
    assert (report.rank, report.ranks) == (0, [0, 2, 11])
    assert hr.Report.load(tmp_path / "job", rank=11).profile.sink.steps == 12


@pytest.mark.parametrize("rank", [-1, True, "1", 1.0, 2**40])
def test_bad_ranks_are_refused(tmp_path: Path, rank: Any) -> None:
    with pytest.raises(hr.UsageError, match="rank"), hr.session(run=tmp_path / "a", rank=rank):
        pass


class TestWrapWithARunOfItsOwn:
    def test_closes_with_the_loop(self, tmp_path: Path) -> None:
        for _ in hr.wrap([1, 2, 3], run=tmp_path / "a"):
            assert "rank0.live" in files(tmp_path / "a")
        assert files(tmp_path / "a") == ["rank0.hrseg"]
        assert hr.Report.load(tmp_path / "a").profile.finished

    def test_closes_when_the_object_is_gone(self, tmp_path: Path) -> None:
        loader = hr.wrap([1, 2, 3], run=tmp_path / "a")
        list(loader)
        assert "rank0.live" in files(tmp_path / "a")
        del loader
        assert files(tmp_path / "a") == ["rank0.hrseg"]

    def test_closes_when_the_last_object_is_gone(self, tmp_path: Path) -> None:
        train = hr.wrap(range(3), name="train", run=tmp_path / "a")
        valid = hr.wrap(range(2), name="valid", run=tmp_path / "a")
        list(train)
        del train
        assert "rank0.live" in files(tmp_path / "a")
        list(valid)
        del valid
        assert files(tmp_path / "a") == ["rank0.hrseg"]
        assert (steps(tmp_path / "a", "train"), steps(tmp_path / "a", "valid")) == (3, 2)

    def test_stays_open_while_its_loop_runs(self, tmp_path: Path) -> None:
        loop = iter(hr.wrap(range(3), run=tmp_path / "a"))
        next(loop)
        assert "rank0.live" in files(tmp_path / "a")
        assert len(list(loop)) == 2
        del loop
        assert steps(tmp_path / "a") == 3

    def test_an_iterator_taken_from_with_next(self, tmp_path: Path) -> None:
        loader: Any = hr.wrap(iter(range(3)), run=tmp_path / "a")
        assert (next(loader), next(loader)) == (0, 1)
        del loader
        assert files(tmp_path / "a") == ["rank0.hrseg"]
        assert steps(tmp_path / "a") == 2

    def test_does_not_close_the_session_around_it(self, tmp_path: Path) -> None:
        with hr.session(run=tmp_path / "a"):
            list(hr.wrap(range(3), name="first", run=tmp_path / "a"))
            list(hr.wrap(range(5), name="second"))
        assert steps(tmp_path / "a", "first") == 3
        assert steps(tmp_path / "a", "second") == 5
        assert files(tmp_path / "a") == ["rank0.hrseg"]

    def test_what_names_no_run_joins_it(self, tmp_path: Path) -> None:
        with hr.session(run=tmp_path / "outer"):
            pass
        train = hr.wrap(range(3), name="train", run=tmp_path / "a")
        valid = hr.wrap(range(2), name="valid")
        list(train)
        del train
        list(valid)
        del valid
        assert files(tmp_path / "a") == ["rank0.hrseg"]
        assert sorted(hr.Report.load(tmp_path / "a").loaders) == ["train", "valid"]

    def test_a_cell_that_is_run_again_loses_nothing(self, tmp_path: Path) -> None:
        for count in (1, 2, 3):
            for _ in hr.wrap(range(count), run=tmp_path / "a", name=f"loader {count}"):
                pass
        assert files(tmp_path / "a") == ["rank0.2.hrseg", "rank0.3.hrseg", "rank0.hrseg"]
        assert [steps(tmp_path / "a", f"loader {count}") for count in (1, 2, 3)] == [1, 2, 3]

    def test_two_runs_at_once(self, tmp_path: Path) -> None:
        first = hr.wrap(range(4), run=tmp_path / "a")
        second = hr.wrap(range(6), run=tmp_path / "b")
        assert len([*zip(first, second, strict=False)]) == 4
        del first, second
        assert steps(tmp_path / "a") == 4
        # zip asked the first one once more and then stopped.
        assert steps(tmp_path / "b") == 4

    def test_queues_and_operators_before_wrap_are_in_it(
        self, execute: Callable[..., Any], tmp_path: Path
    ) -> None:
        execute(
            """
            import threading
            import headrace as hr

            q = hr.Queue(4, name="early")

            @hr.operator("decode")
            def decode(item):
                return item

            def produce():
                for item in range(10):
                    q.put(decode(item))
                q.put(None)

            thread = threading.Thread(target=produce)
            thread.start()
            while not q.full():
                pass
            loader = hr.wrap(iter(q.get, None), run="early")
            assert len(list(loader)) == 10
            thread.join()
            """
        )
        profile = hr.Report.load(tmp_path / "early").profile
        assert ("decode", 10) in [(one.name, one.items) for one in profile.operators]
        assert [(one.name, one.puts, one.gets) for one in profile.queues] == [("early", 10, 10)]
        assert not (tmp_path / "headrace-runs").exists()

    def test_hundreds_after_each_other_leave_nothing_in_memory(self, tmp_path: Path) -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))
        threads = threading.active_count()
        for number in range(150):
            list(hr.wrap([1, 2], run=tmp_path / f"run {number}"))
        assert steps(tmp_path / "run 149") == 2
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 20
        assert threading.active_count() == threads
        mine = Path(f"/dev/shm/headrace-{os.geteuid()}")
        if mine.exists():
            assert len([name for name in files(mine) if name.startswith(f"{os.getpid()}-")]) < 10


DEFAULT_RUN = """
    import headrace as hr

    loader = hr.wrap([1, 2, 3], name="train")
    assert list(loader) == [1, 2, 3]
"""


def runs_in(folder: Path) -> list[Path]:
    assert (folder / "headrace-runs" / ".gitignore").read_text() == "*\n"
    return [path for path in (folder / "headrace-runs").iterdir() if path.is_dir()]


class TestDefaults:
    @pytest.mark.parametrize(
        ("environment", "folder"),
        [
            ({"HEADRACE_DIR": "given/by the user"}, "given/by the user"),
            ({"HEADRACE_DIR": "first", "SLURM_JOB_ID": "7"}, "first"),
            ({"TORCHELASTIC_RUN_ID": "job-7"}, "headrace-runs/job-7"),
            ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "4711"}, "headrace-runs/slurm-4711"),
            ({"MASTER_ADDR": "node3", "MASTER_PORT": "29500"}, "headrace-runs/node3-29500"),
        ],
    )
    def test_the_folder_is_what_all_ranks_share(
        self, execute: Callable[..., Any], tmp_path: Path, environment: dict[str, str], folder: str
    ) -> None:
        for rank in ("0", "1"):
            result = execute(DEFAULT_RUN, **environment, RANK=rank)
            assert result.err == ""
        assert files(tmp_path / folder) == ["rank0.hrseg", "rank1.hrseg"]
        assert steps(tmp_path / folder) == 3

    def test_else_the_date_and_the_process(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        result = execute(DEFAULT_RUN)
        (folder,) = runs_in(tmp_path)
        # Nobody asked for a folder, so its place is said.
        assert f"headrace report {folder}" in result.err
        date, time, pid = folder.name.split("-")
        assert (len(date), len(time)) == (8, 6)
        assert pid.isdigit()
        assert steps(folder) == 3

    @pytest.mark.parametrize("name", ["../../outside", "a/b", "..", "x" * 5000, "two\nlines", "."])
    def test_a_job_name_cannot_leave_the_folder(
        self, execute: Callable[..., Any], tmp_path: Path, name: str
    ) -> None:
        execute(DEFAULT_RUN, TORCHELASTIC_RUN_ID=name)
        (folder,) = runs_in(tmp_path)
        assert steps(folder) == 3

    @pytest.mark.parametrize("variable", ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK_ID"])
    def test_the_rank_is_the_launchers(
        self, execute: Callable[..., Any], tmp_path: Path, variable: str
    ) -> None:
        execute(DEFAULT_RUN, HEADRACE_DIR="job", **{variable: "5"})
        assert files(tmp_path / "job") == ["rank5.hrseg"]

    @pytest.mark.parametrize("rank", ["", "x", "-1", "1e3", "99999999999999999999"])
    def test_a_rank_that_is_no_number_is_none(
        self, execute: Callable[..., Any], tmp_path: Path, rank: str
    ) -> None:
        execute(DEFAULT_RUN, HEADRACE_DIR="job", RANK=rank)
        assert files(tmp_path / "job") == ["rank0.hrseg"]

    def test_one_run_serves_all_that_names_none(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        execute(
            """
            import headrace as hr

            train, valid = hr.wrap([1, 2, 3], name="train"), hr.wrap([4], name="valid")
            for _ in range(2):
                list(train), list(valid)
            with hr.session(run="apart"):
                list(hr.wrap([1], name="apart"))
            list(train)
            """,
            HEADRACE_DIR="job",
        )
        assert (steps(tmp_path / "job", "train"), steps(tmp_path / "job", "valid")) == (9, 2)
        assert hr.Report.load(tmp_path / "apart").loaders == ["apart"]

    def test_a_program_that_changes_its_folder(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        result = execute(
            """
            import os
            import headrace as hr

            elsewhere = os.path.abspath("elsewhere")
            loader = hr.wrap([1, 2, 3], name="train")
            for _ in loader:
                os.chdir(elsewhere)
            """,
            HEADRACE_DIR="job",
        )
        assert result.err == ""
        assert files(tmp_path / "job") == ["rank0.hrseg"]
        assert steps(tmp_path / "job") == 3

    def test_a_session_without_a_name(self, execute: Callable[..., Any], tmp_path: Path) -> None:
        execute(
            """
            import headrace as hr

            with hr.session() as session:
                list(hr.wrap([1, 2]))
            assert session.run.endswith("/job")
            """,
            HEADRACE_DIR="job",
        )
        assert steps(tmp_path / "job") == 2
